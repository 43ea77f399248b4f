"""Where the server's certificate comes from, and that it changes when it should and not before."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.webhooks.certificates import FromFiles, FromSecret, SelfMade, Serving, UnusableCertificate, load
from unit.kube.fake_api import FakeApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
HOSTS = ("butler-webhooks.home.svc", "127.0.0.1")
SECRET = "/api/v1/namespaces/home/secrets/certificate"


class Calendar:
    def __init__(self) -> None:
        self.today = NOW

    def __call__(self) -> datetime.datetime:
        return self.today

    def passes(self, days: int) -> None:
        self.today += datetime.timedelta(days=days)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    server = FakeApi()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with Client(Connection(api.url)) as connected:
        yield connected


def names(serving: Serving) -> set[str]:
    extension = x509.load_pem_x509_certificate(serving.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return {str(name.value) for name in extension.value}


def verify(serving: Serving) -> None:
    """The certificate is signed by what callers are told to trust."""
    ca = x509.load_pem_x509_certificate(serving.authorities)
    x509.load_pem_x509_certificate(serving.certificate).verify_directly_issued_by(ca)


async def test_a_certificate_of_our_own_names_its_hosts_and_stays_while_it_lasts() -> None:
    calendar = Calendar()
    source = SelfMade(HOSTS, calendar)
    first = await source.fetch()
    verify(first)
    assert names(first) == set(HOSTS)
    calendar.passes(300)
    assert await source.fetch() is first


async def test_a_certificate_of_our_own_is_renewed_under_the_same_authority() -> None:
    calendar = Calendar()
    source = SelfMade(HOSTS, calendar)
    first = await source.fetch()
    calendar.passes(306)
    second = await source.fetch()
    verify(second)
    assert second.certificate != first.certificate
    assert second.authorities == first.authorities
    assert await source.fetch() is second


async def test_an_authority_near_its_end_is_renewed_with_its_key_so_that_old_bundles_still_fit() -> None:
    calendar = Calendar()
    source = SelfMade(HOSTS, calendar)
    first = await source.fetch()
    calendar.passes(3600)
    second = await source.fetch()
    assert second.authorities != first.authorities
    old = x509.load_pem_x509_certificate(first.authorities)
    x509.load_pem_x509_certificate(second.certificate).verify_directly_issued_by(old)


def write(directory: Path, serving: Serving) -> FromFiles:
    for name, content in (("tls.crt", serving.certificate), ("tls.key", serving.key), ("ca.crt", serving.authorities)):
        (directory / f"{name}.new").write_bytes(content)
        (directory / f"{name}.new").rename(directory / name)
    return FromFiles(directory / "tls.crt", directory / "tls.key", directory / "ca.crt")


async def test_files_are_read_again_when_they_are_replaced(tmp_path: Path) -> None:
    first, second = await SelfMade(HOSTS).fetch(), await SelfMade(HOSTS).fetch()
    source = write(tmp_path, first)
    found = await source.fetch()
    assert found == first
    assert await source.fetch() is found
    write(tmp_path, second)
    assert await source.fetch() == second


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    source = write(tmp_path, await SelfMade(HOSTS).fetch())
    (tmp_path / "tls.key").unlink()
    with pytest.raises(UnusableCertificate, match=r"tls\.key cannot be read .*mount the webhook's certificate there"):
        await source.fetch()


async def test_a_key_beside_the_authorities_is_never_published(tmp_path: Path) -> None:
    made = await SelfMade(HOSTS).fetch()
    one = tmp_path / "all.pem"
    one.write_bytes(made.key + made.certificate + made.authorities)
    found = await FromFiles(one, one).fetch()
    assert found.authorities == made.certificate + made.authorities


async def test_authorities_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    source = write(tmp_path, await SelfMade(HOSTS).fetch())
    (tmp_path / "ca.crt").write_bytes(b"half a certif")
    with pytest.raises(UnusableCertificate, match=r"ca\.crt holds no certificate"):
        await source.fetch()


async def test_a_pair_that_does_not_match_changes_nothing(tmp_path: Path) -> None:
    good, other = await SelfMade(HOSTS).fetch(), await SelfMade(HOSTS).fetch()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, good)
    with pytest.raises(UnusableCertificate, match="do not belong together") as told:
        load(context, Serving(other.certificate, good.key, other.authorities))
    assert "PRIVATE" not in str(told.value)


async def test_keys_are_not_shown() -> None:
    assert "PRIVATE" not in repr(await SelfMade(HOSTS).fetch())


# Shared by replicas.


async def test_replicas_agree_on_one_authority(api: FakeApi, client: Client) -> None:
    sources = [FromSecret(client, "home", "certificate", HOSTS) for _ in range(8)]
    found = await asyncio.gather(*(source.fetch() for source in sources))
    assert len({serving.authorities for serving in found}) == 1
    assert len({serving.certificate for serving in found}) == 1
    verify(found[0])
    assert api.objects[SECRET]["type"] == "kubernetes.io/tls"


async def test_replicas_agree_on_a_renewal_and_keep_the_authority(api: FakeApi, client: Client) -> None:
    calendar = Calendar()
    sources = [FromSecret(client, "home", "certificate", HOSTS, calendar) for _ in range(4)]
    (first, *_) = [await source.fetch() for source in sources]
    assert await sources[0].fetch() is first
    calendar.passes(320)
    found = await asyncio.gather(*(source.fetch() for source in sources))
    assert {serving.authorities for serving in found} == {first.authorities}
    assert len({serving.certificate for serving in found}) == 1
    assert found[0].certificate != first.certificate


async def test_a_shared_certificate_for_other_hosts_is_made_anew(api: FakeApi, client: Client) -> None:
    await FromSecret(client, "home", "certificate", ["elsewhere.svc"]).fetch()
    assert names(await FromSecret(client, "home", "certificate", HOSTS).fetch()) == set(HOSTS)


@pytest.mark.parametrize("spoiled", ["tls.crt", "ca.key", "ca.crt"])
async def test_a_secret_that_cannot_be_used_is_not_replaced_silently(
    api: FakeApi, client: Client, spoiled: str
) -> None:
    await FromSecret(client, "home", "certificate", HOSTS).fetch()
    secret: dict[str, Any] = api.objects[SECRET]
    api.put(SECRET, {**secret, "data": {**secret["data"], spoiled: "bm9uc2Vuc2U="}})
    with pytest.raises(UnusableCertificate, match=r"Secret home/certificate cannot be used .*delete it"):
        await FromSecret(client, "home", "certificate", HOSTS).fetch()
