"""A kubeconfig out of a Secret: what it may say, what it may not, and that errors keep its secrets."""

import base64
from typing import Any

import pytest
import yaml

from butler.kube import config
from butler.kube.errors import ConfigError
from butler.kube.untrusted_kubeconfig import LARGEST

Json = dict[str, Any]
SOURCE = "Secret payments-1a2b3c4d/payments-admin-kubeconfig, key admin.conf"
MARK = "s3cr3tv4lu3"
CA = b"-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----\n"
CERT = b"-----BEGIN CERTIFICATE-----\nme\n-----END CERTIFICATE-----\n"
KEY = f"-----BEGIN PRIVATE KEY-----\n{MARK}\n-----END PRIVATE KEY-----\n".encode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(cluster: Json | None = None, user: Json | None = None, **more: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "admin@payments",
        "clusters": [
            {
                "name": "payments",
                "cluster": {
                    "server": "https://10.40.1.5:6443",
                    "certificate-authority-data": b64(CA),
                    **(cluster or {}),
                },
            }
        ],
        "users": [
            {
                "name": "admin",
                "user": {"client-certificate-data": b64(CERT), "client-key-data": b64(KEY)} if user is None else user,
            }
        ],
        "contexts": [{"name": "admin@payments", "context": {"cluster": "payments", "user": "admin"}}],
        **more,
    }


def read(content: Json | str | bytes, **options: Any) -> config.Connection:
    text = yaml.safe_dump(content) if isinstance(content, dict) else content
    return config.from_text(text, source=SOURCE, environ={}, **options)


def test_an_administrators_kubeconfig_is_read() -> None:
    found = read(document())
    assert (found.server, found.ca, found.client_cert, found.client_key) == (
        "https://10.40.1.5:6443",
        CA,
        CERT,
        KEY,
    )
    assert (found.token, found.exec_plugin, found.token_file, found.proxy) == (None, None, None, None)
    assert SOURCE in found.source


def test_bytes_are_read_as_text_is() -> None:
    assert read(yaml.safe_dump(document()).encode()) == read(document())


def test_a_token_and_a_name_with_password_are_read() -> None:
    assert read(document(user={"token": "abc.def"})).token == "abc.def"
    found = read(document(user={"username": "u", "password": "p"}))
    assert (found.username, found.password) == ("u", "p")


def test_a_server_with_a_path_and_a_name_for_tls_are_read() -> None:
    found = read(document({"server": "https://127.0.0.1:7443/clusters/a/b", "tls-server-name": "kubernetes"}))
    assert (found.server, found.server_name) == ("https://127.0.0.1:7443/clusters/a/b", "kubernetes")
    assert read(document({"server": "https://[fd00::1]:6443"})).server == "https://[fd00::1]:6443"
    assert read(document({"server": "https://api.payments.svc.cluster.local"})).server.startswith("https://api.")


def test_a_local_world_speaks_http_on_this_machine_and_asks_for_no_credentials() -> None:
    plain = {"server": "http://127.0.0.1:8080", "certificate-authority-data": None}
    assert read(document(plain, {}), allow_plain_loopback=True).server == "http://127.0.0.1:8080"
    with pytest.raises(ConfigError, match="must be https"):
        read(document(plain | {"server": "http://10.0.0.1:8080"}, {}), allow_plain_loopback=True)


def test_another_context_can_be_chosen() -> None:
    users = [{"name": "admin", "user": {"token": "one"}}, {"name": "other", "user": {"token": "two"}}]
    contexts = [{"name": name, "context": {"cluster": "payments", "user": name}} for name in ("admin", "other")]
    several = {**document(users=users, contexts=contexts), "current-context": "admin"}
    assert (read(several).token, read(several, context="other").token) == ("one", "two")


def test_a_proxy_is_used_only_where_that_is_allowed() -> None:
    proxied = document({"proxy-url": "http://proxy:3128"})
    assert read(proxied, allow_proxy=True).proxy == "http://proxy:3128"
    with pytest.raises(ConfigError, match="proxy-url is not allowed"):
        read(proxied)


def test_the_proxy_of_our_own_environment_is_used() -> None:
    found = config.from_text(yaml.safe_dump(document()), source=SOURCE, environ={"HTTPS_PROXY": "http://ours:1"})
    assert found.proxy == "http://ours:1"


def test_what_is_forbidden_to_one_user_is_refused_where_another_is_chosen() -> None:
    """People use the other contexts of a kubeconfig, too, and a change of current-context brings it to life."""
    users = [{"name": "admin", "user": {"token": "one"}}, {"name": "other", "user": {"exec": {"command": MARK}}}]
    with pytest.raises(ConfigError, match="exec is not allowed") as refused:
        read(document(users=users))
    assert MARK not in str(refused.value)
    clusters = document()["clusters"]
    others = [*clusters, {"name": "other", "cluster": {"server": "https://x", "proxy-url": f"http://{MARK}"}}]
    with pytest.raises(ConfigError, match="proxy-url is not allowed"):
        read(document(clusters=others))


@pytest.mark.parametrize(
    ("cluster", "user", "complaint"),
    [
        ({}, {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": MARK}}, "exec is not allowed"),
        ({}, {"exec": {}}, "exec is not allowed"),
        ({}, {"auth-provider": {"name": MARK}}, "auth-provider is not allowed"),
        ({}, {"tokenFile": f"/var/run/{MARK}"}, "tokenFile is not allowed"),
        ({}, {"token": "x", "tokenFile": f"/var/run/{MARK}"}, "tokenFile is not allowed"),
        ({}, {"client-certificate": f"/{MARK}", "client-key": f"/{MARK}"}, "client-certificate is not allowed"),
        ({}, {"client-certificate-data": b64(CERT), "client-key": f"/{MARK}"}, "client-key is not allowed"),
        ({"certificate-authority": f"/etc/{MARK}"}, None, "certificate-authority is not allowed"),
        ({}, {"token": "x", "as": MARK}, "as is not allowed"),
        ({}, {"token": "x", "as-groups": [MARK]}, "as-groups is not allowed"),
        ({"server": ""}, None, "no server"),
        ({"server": None}, None, "no server"),
        ({"server": f"ftp://{MARK}"}, None, "not a URL"),
        ({"server": f"unix:///{MARK}"}, None, "not a URL"),
        ({"server": f"{MARK}:6443"}, None, "not a URL"),
        ({"server": f"https://{MARK}:99999"}, None, "not a URL"),
        ({"server": f"https://{MARK}:x"}, None, "not a URL"),
        ({"server": f"https://[{MARK}"}, None, "not a URL"),
        ({"server": f"https://a b{MARK}/"}, None, "not a URL"),
        ({"server": f"https://u:{MARK}@host"}, None, "nothing else"),
        ({"server": f"https://host/?q={MARK}"}, None, "nothing else"),
        ({"server": f"https://host/#{MARK}"}, None, "nothing else"),
        ({"server": f"https://host/a\x00{MARK}"}, None, "nothing else"),
        ({"server": f"http://{MARK}.example:8080"}, None, "must be https"),
        ({"server": "http://127.0.0.1:8080"}, None, "must be https"),
        ({}, {}, "no token and no client certificate"),
        ({}, {"username": MARK}, "no token and no client certificate"),
        ({}, {"username": "u", "password": f"{MARK}\nX: y"}, "password has characters that cannot be sent"),
        ({}, {"username": f"{MARK}\n", "password": "p"}, "username has characters that cannot be sent"),
        ({"tls-server-name": f".{MARK}"}, None, "tls-server-name"),
        ({"certificate-authority-data": f"*{MARK}*"}, None, "certificate-authority-data is not base64"),
        ({"certificate-authority-data": b64(MARK.encode())}, None, "certificate-authority-data is not PEM"),
        (
            {},
            {"client-certificate-data": b64(CERT), "client-key-data": b64(MARK.encode())},
            "client-key-data is not PEM",
        ),
        (
            {},
            {"client-certificate-data": b64(MARK.encode()), "client-key-data": b64(KEY)},
            "client-certificate-data is not PEM",
        ),
        ({}, {"client-key-data": b64(KEY)}, "must both be set"),
        ({}, {"token": f"{MARK}\r\nX: y"}, "a line break"),
        ({}, {"token": f"{MARK}ü"}, "no token has"),
        ({}, {"token": MARK, "username": "u"}, "only one way"),
        ({"insecure-skip-tls-verify": True}, None, "both set"),
        ({"insecure-skip-tls-verify": MARK}, None, "Expected `bool"),
        ({"server": [MARK]}, None, "Expected `str"),
        ({}, {"token": {"a": MARK}}, "Expected `str"),
        ({}, {"token": 12345}, "Expected `str"),
    ],
)
def test_what_is_foreign_and_reaches_too_far_is_refused_without_being_repeated(
    cluster: Json, user: Json | None, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        read(document(cluster, user))
    assert str(caught.value).startswith(SOURCE)
    assert MARK not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a mapping was expected"),
        ("- a", "a mapping was expected"),
        (MARK, "a mapping was expected"),
        (f"a: [{MARK}", r"not plain YAML \(line 1\)"),
        (f"a: b\n\ttoken: {MARK}", r"not plain YAML \(line 2\)"),
        (b"\xff\xfe\x00\xd8" + MARK.encode(), "not plain YAML"),
        (f"a: &x {MARK}\nb: *x", "not plain YAML"),
        (f"a: !!python/object/apply:os.system [{MARK}]", "not plain YAML"),
        ("a: 2024-99-99", "not plain YAML"),
        ("a: " + "9" * 20000, "not plain YAML"),
        ("[" * 20000, "not plain YAML"),
        ("? {a: b}\n: c", "not plain YAML"),
        ("a" * (LARGEST + 1), "larger than a kubeconfig can be"),
        ("a: b", "no current-context"),
        ("current-context: x", "'x'.*contexts.*none"),
        ("current-context: [x]", "Expected `str"),
        ("clusters: 7", "Expected `array"),
        ("clusters: {a: b}", "Expected `array"),
        ("clusters: [7]", "Expected `object"),
        ("clusters: [{}]", "missing required field `name`"),
        ("users: [{name: x, user: y}]", "Expected `object"),
        ("contexts: [{name: x, context: {cluster: []}}]", "Expected `str"),
        ("current-context: x\ncontexts: [{name: x}]", "names cluster ''"),
        ("1: 2", "Expected `str` - at `key`"),
    ],
)
def test_garbage_is_refused_with_a_sentence(text: str | bytes, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        read(text)
    assert str(caught.value).startswith(SOURCE)
    assert MARK not in str(caught.value)
