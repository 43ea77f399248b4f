"""What is said about a Secret that a provider cannot use, and that it never quotes the Secret."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from butler.providers.credentials import check, decode_data, needed_keys, read
from unit.providers.given import BLOCKS, PASSWORD, UUID, config, kubeconfig, secret, service_account

SINGLE = {"harvester": "kubeconfig", "gcp": "serviceAccountKey"}


@pytest.mark.parametrize("provider", BLOCKS)
def test_a_complete_secret_has_no_problems(provider: str) -> None:
    assert check(config(provider), secret(provider)) == []


@pytest.mark.parametrize(("provider", "key"), SINGLE.items())
def test_a_single_key_may_have_another_name(provider: str, key: str) -> None:
    data = {"mine": secret(provider)[key]}
    assert needed_keys(config(provider, key="mine")) == ("mine",)
    assert check(config(provider, key="mine"), data) == []
    assert list(read(config(provider, key="mine"), data)) == [key]
    assert check(config(provider, key="mine"), secret(provider)) == [
        f"key mine is missing (it has {key}): add it, or name another in spec.credentialsRef.key"
    ]


def test_a_key_cannot_be_chosen_where_several_are_read() -> None:
    assert check(config("nutanix", key="login"), secret("nutanix")) == [
        (
            "spec.credentialsRef.key: provider nutanix reads several keys, each by its own name,"
            " so none can be chosen: remove it"
        )
    ]


@pytest.mark.parametrize(
    ("provider", "data", "said"),
    [
        (
            "harvester",
            {"kube.conf": b"x"},
            "key kubeconfig is missing (it has kube.conf): add it, or name another in spec.credentialsRef.key",
        ),
        ("nutanix", {}, "keys username and password are missing (it is empty): add them"),
        ("proxmox", {"username": b"a@pve", "pass": b"x"}, "key password is missing (it has pass and username): add it"),
        ("azure", {"clientID": b"1"}, "keys clientSecret and tenantID are missing (it has clientID): add them"),
        ("aws", secret("aws", secretAccessKey=b""), "secretAccessKey is empty: fill in it"),
    ],
)
def test_missing_keys_are_named(provider: str, data: dict[str, bytes], said: str) -> None:
    assert check(config(provider), data) == [said]


@pytest.mark.parametrize(
    ("provider", "changes", "said"),
    [
        ("nutanix", {"password": b"secret\n"}, "password has a space or a line break at its start or end"),
        ("nutanix", {"password": b"\xff\xfe"}, "password is not text"),
        ("nutanix", {"password": b"a\x00b"}, "password has characters that cannot be typed"),
        ("nutanix", {"username": b"butler:x"}, "username has a colon"),
        ("nutanix", {"ca__pem": b"nonsense"}, "ca.pem holds no certificate"),
        ("proxmox", {"username": b"root"}, "username must be the id of an API token, as in butler@pve!token"),
        ("proxmox", {"username": b"butler@pve"}, "username must be the id of an API token"),
        ("proxmox", {"password": b"swordfish"}, "password must be the secret of that API token"),
        ("aws", {"accessKeyID": b"my-key"}, "accessKeyID is not the id of an access key"),
        ("aws", {"accessKeyID": b"ASIAIOSFODNN7EXAMPLE"}, "accessKeyID is of temporary credentials"),
        ("aws", {"secretAccessKey": b"short"}, "secretAccessKey is not the secret of an access key"),
        ("gcp", {"serviceAccountKey": b"{"}, "serviceAccountKey is no JSON key of a service account"),
        ("gcp", {"serviceAccountKey": b"[]"}, "serviceAccountKey is no JSON key of a service account"),
        ("gcp", {"serviceAccountKey": service_account(type="authorized_user")}, "is a credential of another type"),
        ("gcp", {"serviceAccountKey": service_account(private_key="")}, "serviceAccountKey lacks private_key"),
        ("gcp", {"serviceAccountKey": service_account(private_key="x")}, "private_key is no RSA key in PEM"),
        ("azure", {"clientID": b"butler"}, "clientID is no UUID"),
        ("azure", {"tenantID": b"contoso.onmicrosoft.com"}, "tenantID is no UUID"),
        ("azure", {"clientSecret": UUID.encode()}, "clientSecret is a secret's id: give its value"),
        ("azure", {"subscriptionID": UUID.encode()}, "subscriptionID is another one than spec.azure.subscriptionID"),
    ],
)
def test_a_wrong_shape_is_explained(provider: str, changes: dict[str, bytes], said: str) -> None:
    (problem,) = check(config(provider), secret(provider, **changes))
    assert said in problem


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (kubeconfig(user={"exec": {"command": "sh", "args": [PASSWORD]}}), "exec is not allowed"),
        (kubeconfig(user={"auth-provider": {"name": "oidc"}}), "auth-provider is not allowed"),
        (kubeconfig(user={"tokenFile": "/etc/passwd"}), "tokenFile is not allowed"),
        (kubeconfig(user={"client-certificate": "/x"}), "client-certificate is not allowed"),
        (kubeconfig(user={"client-key": "/x"}), "client-key is not allowed"),
        (kubeconfig(cluster={"certificate-authority": "/x"}), "certificate-authority is not allowed"),
        (kubeconfig(cluster={"proxy-url": "http://evil"}), "proxy-url is not allowed"),
        (
            kubeconfig(
                users=[{"name": "u", "user": {"token": "t"}}, {"name": "v", "user": {"exec": {"command": "sh"}}}]
            ),
            "exec is not allowed",
        ),
        (kubeconfig(user={"as": "admin"}), "as is not allowed"),
        (kubeconfig(user={"username": "u", "password": "p"}), "only one way to authenticate"),
        (kubeconfig(contexts=[{"name": "x", "context": {"cluster": "c"}}]), "has no token and no client certificate"),
        (kubeconfig("http://127.0.0.1:8080"), "must be https"),
        (kubeconfig(user={"token": ""}), "the user has no token and no client certificate"),
        (kubeconfig(user={"token": "a\nb"}), "the token has a space, a line break"),
        (kubeconfig(user={"token": 12345}), "got `int` - at `$.users[0].user.token`"),
        (kubeconfig(cluster={"server": ["https://a"]}), "got `array` - at `$.clusters[0].cluster.server`"),
        (kubeconfig(user={"client-key-data": {"a": 1}}), "at `$.users[0].user.client-key-data`"),
        (kubeconfig(user={"client-key-data": "AAAA"}), "must both be set"),
        (kubeconfig(cluster={"certificate-authority-data": "!"}), "certificate-authority-data is not base64"),
        (
            kubeconfig(ca=base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----").decode()),
            "certificate-authority-data holds no certificate",
        ),
        (kubeconfig("http://harvester"), "must be https"),
        (kubeconfig("https://a:b@harvester"), "a host, a port and a path, and nothing else"),
        (kubeconfig("https://harvester:99999"), "the server is not a URL"),
        (kubeconfig(**{"current-context": ""}), "no current-context is set"),
        (kubeconfig(**{"current-context": "y"}), "the wanted context is 'y', which is not under contexts"),
        (kubeconfig(users=[]), "context 'x' names user 'u', which is not under users"),
        (kubeconfig(users=[7]), "got `int` - at `$.users[0]`"),
        (b"a: [", "not plain YAML (line 1)"),
        (b"[" * 60_000, "not plain YAML"),
        (b"hello", "not a kubeconfig"),
        (b" " * 70_000, "larger than a kubeconfig can be"),
    ],
)
def test_a_kubeconfig_that_does_more_than_hold_data_is_refused(content: bytes, said: str) -> None:
    (problem,) = check(config("harvester"), {"kubeconfig": content})
    assert said in problem
    assert problem.startswith(("kubeconfig: ", "kubeconfig, context 'x': "))
    assert PASSWORD not in problem


@draw(st.sampled_from([block for block in BLOCKS if block != "local"]), st.data())
def test_no_sentence_quotes_a_secret(provider: str, data: st.DataObject) -> None:
    marker = "Xy7MARKERq"
    spoiled = {
        key: data.draw(st.sampled_from([value, marker.encode(), value[: len(value) // 2] + marker.encode()]))
        for key, value in secret(provider).items()
    }
    for problem in check(config(provider), spoiled):
        assert marker not in problem


def test_data_that_is_no_base64_counts_as_missing() -> None:
    assert decode_data({"a": "YQ==", "b": "???"}) == {"a": b"a"}
    assert decode_data(None) == {}
