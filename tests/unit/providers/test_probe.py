"""Probes against real HTTPS servers on the loopback interface: who is asked what, and what comes of each answer."""

from __future__ import annotations

import base64
import json
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from butler.providers.http import Patience
from butler.providers.probe import CloudEndpoints, can_be_asked, probe
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, Outcome, ProviderUnreachable, Unclear
from unit.providers.given import (
    BLOCKS,
    PASSWORD,
    PUBLIC_KEY,
    UUID,
    Appliance,
    appliance,
    config,
    kubeconfig,
    secret,
    service_account,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from butler.api.providerconfig import ProviderConfig

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
QUICK = Patience(connect=1.0, total=2.0)
BASIC = "Basic " + base64.b64encode(f"butler:{PASSWORD}".encode()).decode()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Appliance]:
    async with appliance(tmp_path / "server") as found:
        yield found


async def ask(asked: ProviderConfig, data: dict[str, bytes], server: Appliance | None = None, **clouds: Any) -> Outcome:
    endpoints = CloudEndpoints(**clouds, tls=server.trust() if server is not None and clouds else None)
    found = await probe(asked, data, now=NOW, clouds=endpoints, patience=QUICK)
    assert PASSWORD not in str(found)
    return found


# Nutanix.


def prism(server: Appliance, **settings: Any) -> tuple[ProviderConfig, dict[str, bytes]]:
    return config("nutanix", endpoint=server.url, **settings), secret("nutanix", ca__pem=server.ca)


def cluster(uuid: str, version: str, *services: str) -> dict[str, Any]:
    build = {"config": {"build": {"version": version}, "service_list": list(services)}}
    return {"metadata": {"uuid": uuid}, "status": {"resources": build}}


async def test_prism_central_accepts_and_tells_its_version(server: Appliance) -> None:
    def me(request: web.Request, _: bytes) -> web.Response:
        return web.Response(status=200 if request.headers["Authorization"] == BASIC else 401)

    server.answers["GET /api/nutanix/v3/users/me"] = me
    entities = [cluster(UUID, "6.10", "AOS"), cluster("pc", "pc.2024.3", "PRISM_CENTRAL")]
    server.on("POST /api/nutanix/v3/clusters/list", {"entities": entities, "metadata": {"total_matches": 2}})
    assert await ask(*prism(server)) == Accepted("Prism Central accepts the credentials", "pc.2024.3")


async def test_a_user_who_may_not_list_clusters_is_accepted(server: Appliance) -> None:
    server.on("GET /api/nutanix/v3/users/me", {})
    server.on("POST /api/nutanix/v3/clusters/list", {}, 403)
    assert await ask(*prism(server)) == Accepted("Prism Central accepts the credentials")


async def test_a_cluster_that_prism_central_does_not_know_is_mentioned(server: Appliance) -> None:
    server.on("GET /api/nutanix/v3/users/me", {})
    listed = {"entities": [cluster("other", "6.10")], "metadata": {"total_matches": 1}}
    server.on("POST /api/nutanix/v3/clusters/list", listed)
    found = await ask(*prism(server))
    assert isinstance(found, Accepted)
    assert f"knows no cluster {UUID}: correct spec.nutanix.clusterUUID" in found.message


@pytest.mark.parametrize("status", [401, 403])
async def test_prism_central_refuses(server: Appliance, status: int) -> None:
    server.on("GET /api/nutanix/v3/users/me", {}, status)
    assert isinstance(await ask(*prism(server)), CredentialsRefused)
    assert server.asked == ["GET /api/nutanix/v3/users/me"]


async def test_a_certificate_of_an_unknown_authority_gets_no_credentials(server: Appliance) -> None:
    asked, data = prism(server)
    del data["ca.pem"]
    found = await ask(asked, data)
    assert isinstance(found, ProviderUnreachable)
    assert "shows a TLS certificate that is not trusted" in found.message
    assert found.message.endswith("put its authority into key ca.pem of the Secret")
    assert server.asked == []


async def test_insecure_accepts_any_certificate(server: Appliance) -> None:
    server.on("GET /api/nutanix/v3/users/me", {})
    asked, data = prism(server, insecure=True)
    del data["ca.pem"]
    assert isinstance(await ask(asked, data), Accepted)


# Proxmox.


def pve(server: Appliance) -> ProviderConfig:
    return config("proxmox", endpoint=server.url, insecure=True)


async def test_proxmox_takes_an_api_token(server: Appliance) -> None:
    def version(request: web.Request, _: bytes) -> web.Response:
        right = request.headers["Authorization"] == f"PVEAPIToken=butler@pve!ci={UUID}"
        return web.json_response({"data": {"version": "8.3.2"}}, status=200 if right else 401)

    server.answers["GET /api2/json/version"] = version
    data = secret("proxmox")
    assert isinstance(await ask(pve(server), data), Accepted)
    assert server.asked == ["GET /api2/json/version"]
    data = secret("proxmox", username=b"butler@pve!cd")
    assert isinstance(await ask(pve(server), data), CredentialsRefused)


async def test_proxmox_is_known_by_the_authority_in_the_secret(server: Appliance) -> None:
    server.on("GET /api2/json/version", {"data": {"version": "8.3.2"}})
    strict = config("proxmox", endpoint=server.url)
    data = secret("proxmox")
    unknown = await ask(strict, data)
    assert isinstance(unknown, ProviderUnreachable)
    assert unknown.message.endswith("put its authority into key ca.pem of the Secret")
    assert await ask(strict, data | {"ca.pem": server.ca}) == Accepted("Proxmox accepts the credentials", "8.3.2")


async def test_another_server_than_proxmox_is_unclear(server: Appliance) -> None:
    server.on("GET /api2/json/version", "<html>")
    assert isinstance(await ask(pve(server), secret("proxmox")), Unclear)


# Harvester.


def harvester(server: Appliance, **changes: Any) -> dict[str, bytes]:
    return {"kubeconfig": kubeconfig(server.url, ca=server.ca_bundle, **changes)}


REVIEWS = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
SERVER_VERSION = "GET /apis/harvesterhci.io/v1beta1/settings/server-version"


async def test_harvester_says_who_we_are_and_its_versions(server: Appliance) -> None:
    def version(request: web.Request, _: bytes) -> web.Response:
        right = request.headers["Authorization"] == f"Bearer {PASSWORD}"
        return web.json_response({"gitVersion": "v1.31.4"}, status=200 if right else 401)

    server.answers["GET /version"] = version
    server.on(REVIEWS, {"status": {"userInfo": {"username": "admin"}}}, 201)
    assert await ask(config("harvester"), harvester(server)) == Accepted(
        "Harvester accepts the kubeconfig", "Kubernetes v1.31.4"
    )
    server.on(SERVER_VERSION, {"value": "v1.4.1"})
    found = await ask(config("harvester"), harvester(server))
    assert isinstance(found, Accepted)
    assert found.version == "v1.4.1 (Kubernetes v1.31.4)"
    assert isinstance(await ask(config("harvester"), harvester(server, user={"token": "old"})), CredentialsRefused)


async def test_being_taken_for_anonymous_is_a_refusal(server: Appliance) -> None:
    server.on("GET /version", {"gitVersion": "v1.31.4"})
    server.on(REVIEWS, {"status": {"userInfo": {"username": "system:anonymous"}}}, 201)
    assert isinstance(await ask(config("harvester"), harvester(server)), CredentialsRefused)
    server.on(REVIEWS, {}, 403)
    assert isinstance(await ask(config("harvester"), harvester(server)), CredentialsRefused)


async def test_a_server_that_does_not_know_the_review_is_believed(server: Appliance) -> None:
    server.on("GET /version", {"gitVersion": "v1.27.0"})
    assert isinstance(await ask(config("harvester"), harvester(server)), Accepted)


async def test_the_endpoint_of_the_spec_goes_before_the_kubeconfig(server: Appliance) -> None:
    server.on("GET /version", {"gitVersion": "v1.31.4"})
    data = {"kubeconfig": kubeconfig("https://elsewhere.invalid", ca=server.ca_bundle)}
    assert isinstance(await ask(config("harvester", endpoint=server.url), data), Accepted)


# Clouds.


async def sts(server: Appliance, data: dict[str, bytes] | None = None) -> Outcome:
    return await ask(config("aws"), data or secret("aws"), server, aws=server.url)


async def test_aws_is_asked_with_a_signature(server: Appliance) -> None:
    def identity(request: web.Request, body: bytes) -> web.Response:
        assert body == b"Action=GetCallerIdentity&Version=2011-06-15"
        signed = request.headers["Authorization"]
        assert "Credential=AKIAIOSFODNN7EXAMPLE/20270115/eu-central-1/sts/aws4_request" in signed
        assert "SignedHeaders=content-type;host;x-amz-date," in signed
        return web.Response(text="<Account>123456789012</Account>")

    server.answers["POST /"] = identity
    assert await sts(server) == Accepted("AWS accepts the access key, which belongs to account 123456789012")


async def test_aws_refuses_with_its_own_word(server: Appliance) -> None:
    server.on("POST /", "<Error><Code>InvalidClientTokenId</Code></Error>", 403)
    found = await sts(server)
    assert isinstance(found, CredentialsRefused)
    assert "(InvalidClientTokenId)" in found.message


async def test_a_wrong_clock_says_nothing_about_credentials(server: Appliance) -> None:
    body = "<Code>SignatureDoesNotMatch</Code><Message>Signature expired: 2027 is now earlier</Message>"
    server.on("POST /", body, 403)
    assert isinstance(await sts(server), Unclear)
    server.on("POST /token", {"error": "invalid_grant", "error_description": "Check your iat and exp values"}, 400)
    assert isinstance(await google(server), Unclear)


async def google(server: Appliance, **key: Any) -> Outcome:
    data = {"serviceAccountKey": service_account(**key)}
    return await ask(config("gcp"), data, server, gcp=f"{server.url}/token")


async def test_google_gets_a_signed_statement_and_no_other_server_does(server: Appliance) -> None:
    def token(_: web.Request, body: bytes) -> web.Response:
        sent = parse_qs(body.decode())
        assert sent["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        head, claims, signature = sent["assertion"][0].split(".")
        PUBLIC_KEY.verify(_bytes(signature), f"{head}.{claims}".encode(), PKCS1v15(), SHA256())
        said = json.loads(_bytes(claims))
        assert said["iss"] == "butler@butler-lab.iam.gserviceaccount.com"
        assert (said["aud"], said["exp"] - said["iat"]) == (f"{server.url}/token", 600)
        return web.json_response({"access_token": "ya29.secret"})

    server.answers["POST /token"] = token
    found = await google(server, token_uri="https://evil.invalid/token")
    assert found == Accepted("Google Cloud accepts the service account's key")


async def test_google_refuses(server: Appliance) -> None:
    server.on("POST /token", {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)
    found = await google(server)
    assert isinstance(found, CredentialsRefused)
    assert "(invalid_grant)" in found.message


async def test_another_universe_is_not_asked(server: Appliance) -> None:
    assert isinstance(await google(server, universe_domain="example.org"), Unclear)
    assert server.asked == []


async def entra(server: Appliance) -> Outcome:
    return await ask(config("azure"), secret("azure"), server, azure=server.url + "/{tenant}/token")


async def test_azure_gives_a_token_for_the_secret(server: Appliance) -> None:
    def token(_: web.Request, body: bytes) -> web.Response:
        sent = parse_qs(body.decode())
        assert sent["client_id"] == [UUID]
        assert sent["scope"] == ["https://management.azure.com/.default"]
        return web.json_response({"access_token": "eyJ.secret"})

    server.answers[f"POST /{secret('azure')['tenantID'].decode()}/token"] = token
    assert await entra(server) == Accepted("Azure accepts the application's secret")


@pytest.mark.parametrize(
    ("status", "error", "code", "advice"),
    [
        (401, "invalid_client", "AADSTS7000215", "clientSecret is wrong: give the secret's value, not its id"),
        (401, "invalid_client", "AADSTS7000222", "clientSecret has expired: create a new one"),
        (400, "unauthorized_client", "AADSTS700016", "tenantID has no application clientID"),
        (400, "invalid_request", "AADSTS90002", "there is no tenant tenantID"),
    ],
)
async def test_azure_refuses_and_the_advice_fits(
    server: Appliance, status: int, error: str, code: str, advice: str
) -> None:
    answer = {"error": error, "error_description": f"{code}: {UUID} at some length"}
    server.on(f"POST /{secret('azure')['tenantID'].decode()}/token", answer, status)
    found = await entra(server)
    assert isinstance(found, CredentialsRefused)
    assert f"({code}): {advice}" in found.message
    assert UUID not in found.message


# What any of them may do.


async def test_no_redirect_is_followed(server: Appliance, tmp_path: Path) -> None:
    async with appliance(tmp_path / "other") as other:
        server.on("GET /api/nutanix/v3/users/me", {}, 302, Location=f"{other.url}/api/nutanix/v3/users/me")
        found = await ask(*prism(server, insecure=True))
        assert isinstance(found, Unclear)
        assert "redirects to another address" in found.message
        assert other.asked == []


async def test_an_endless_answer_is_cut_off(server: Appliance) -> None:
    async def pour(request: web.Request, _: bytes) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            for _chunk in range(10_000):
                await answer.write(b"x" * 65536)
        except ConnectionError:
            pass
        return answer

    server.answers["GET /api/nutanix/v3/users/me"] = pour
    found = await ask(*prism(server))
    assert isinstance(found, ProviderUnreachable)
    assert "answers with more than 512 KiB" in found.message


async def test_no_server_there(server: Appliance) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = await ask(config("nutanix", endpoint=f"https://127.0.0.1:{port}"), secret("nutanix"))
    assert found == ProviderUnreachable(f"127.0.0.1:{port} cannot be reached: connection refused")


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        asked = config("nutanix", endpoint=f"https://127.0.0.1:{port}")
        found = await probe(asked, secret("nutanix"), now=NOW, patience=Patience(connect=0.2, total=0.3))
    assert isinstance(found, ProviderUnreachable)
    assert "does not answer within" in found.message


async def test_what_a_probe_did_not_foresee_is_unclear_and_quotes_nothing() -> None:
    found = await ask(config("harvester"), {"kubeconfig": f"{PASSWORD}: [".encode()})
    assert isinstance(found, Unclear)


@pytest.mark.parametrize("status", [500, 404, 429])
async def test_a_server_in_trouble_says_nothing_about_credentials(server: Appliance, status: int) -> None:
    for what in ("GET /api/nutanix/v3/users/me", "POST /", "POST /token", "GET /version"):
        server.on(what, {}, status)
    assert isinstance(await ask(*prism(server)), Unclear)
    assert isinstance(await sts(server), Unclear)
    assert isinstance(await google(server), Unclear)
    assert isinstance(await ask(config("harvester"), harvester(server)), Unclear)
    assert isinstance(await ask(pve(server), secret("proxmox")), Unclear)
    assert isinstance(await entra(server), Unclear)


def test_every_provider_but_local_can_be_asked() -> None:
    assert [block for block in BLOCKS if not can_be_asked(config(block).spec.provider)] == ["local"]


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
