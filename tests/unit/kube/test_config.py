"""Kubeconfig files in all their usual forms."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from butler.kube import config
from butler.kube.config import ExecPlugin, Impersonation
from butler.kube.errors import ConfigError

PEM = b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
Json = dict[str, Any]


def kubeconfig(
    path: Path, *, cluster: Json | None = None, user: Json | None = None, name: str = "one", **more: Any
) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def load(path: Path, context: str | None = None, **environ: str) -> config.Connection:
    return config.load(path, context, environ=environ)


def test_the_current_context_is_used(tmp_path: Path) -> None:
    found = load(kubeconfig(tmp_path / "c", user={"token": "secret"}))
    assert (found.server, found.namespace, found.token) == ("https://api.example:6443", "ns-one", "secret")


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "a", name="one", user={"token": "first"})
    second = kubeconfig(tmp_path / "b", name="two", user={"token": "second"})
    third = kubeconfig(tmp_path / "c", name="one", user={"token": "shadowed"})
    environ = {"KUBECONFIG": f"{first}:{second}:{tmp_path / 'missing'}:{third}"}
    assert config.load(environ=environ).token == "first"
    assert config.load(context="two", environ=environ).token == "second"


def test_a_context_in_one_file_may_name_a_cluster_in_another(tmp_path: Path) -> None:
    (tmp_path / "contexts").write_text(
        yaml.safe_dump({"contexts": [{"name": "mixed", "context": {"cluster": "one", "user": "two"}}]})
    )
    kubeconfig(tmp_path / "a", name="one", cluster={"server": "https://one"})
    kubeconfig(tmp_path / "b", name="two", user={"token": "second"})
    environ = {"KUBECONFIG": ":".join(str(tmp_path / name) for name in ("contexts", "a", "b"))}
    found = config.load(context="mixed", environ=environ)
    assert (found.server, found.token, found.namespace) == ("https://one", "second", "default")


def test_paths_are_relative_to_the_file_that_has_them(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    for name in ("ca.crt", "me.crt", "me.key"):
        (folder / name).write_bytes(PEM)
    (tmp_path / "token").write_text("t")
    found = load(
        kubeconfig(
            folder / "c",
            cluster={"certificate-authority": "ca.crt"},
            user={"client-certificate": "me.crt", "client-key": "./me.key", "tokenFile": "../token"},
        )
    )
    assert (found.ca, found.client_cert, found.client_key) == (folder / "ca.crt", folder / "me.crt", folder / "me.key")
    assert found.token_file == tmp_path / "token"


def test_inline_data_wins_over_a_path(tmp_path: Path) -> None:
    inline = {"certificate-authority-data": base64.b64encode(PEM).decode(), "certificate-authority": "nowhere"}
    assert load(kubeconfig(tmp_path / "c", cluster=inline)).ca == PEM


def test_a_server_may_have_a_path_and_loses_its_trailing_slash(tmp_path: Path) -> None:
    found = load(kubeconfig(tmp_path / "c", cluster={"server": "https://127.0.0.1:6443/clusters/team/one/"}))
    assert found.server == "https://127.0.0.1:6443/clusters/team/one"


def test_a_server_without_a_scheme_gets_one(tmp_path: Path) -> None:
    assert load(kubeconfig(tmp_path / "c", cluster={"server": "localhost:8080"})).server == "http://localhost:8080"
    insecure = {"server": "localhost:6443", "insecure-skip-tls-verify": True}
    assert load(kubeconfig(tmp_path / "c", cluster=insecure)).server == "https://localhost:6443"


def test_impersonation_is_read(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": {"reason": ["a", "b"]}}
    found = load(kubeconfig(tmp_path / "c", user=user))
    assert found.impersonate == Impersonation("jane", "7", ("dev", "ops"), (("reason", ("a", "b")),))


def test_proxy_and_server_name_are_read(tmp_path: Path) -> None:
    cluster = {"proxy-url": "http://proxy:3128", "tls-server-name": "kubernetes"}
    found = load(kubeconfig(tmp_path / "c", cluster=cluster))
    assert (found.proxy, found.server_name) == ("http://proxy:3128", "kubernetes")


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.example:6443", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example:6443", {"https_proxy": "http://p:1", "NO_PROXY": ".example"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, None),
        ("http://api.example", {"HTTPS_PROXY": "http://p:1"}, None),
    ],
)
def test_the_environment_may_name_a_proxy(
    tmp_path: Path, server: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert load(kubeconfig(tmp_path / "c", cluster={"server": server}), **environ).proxy == proxy


def test_an_exec_plugin_is_read_with_what_it_may_know_of_the_cluster(tmp_path: Path) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"certificate-authority-data": base64.b64encode(PEM).decode(), "extensions": [extension]}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--once"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "install it",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    found = load(kubeconfig(tmp_path / "c", cluster=cluster, user={"exec": plugin})).exec_plugin
    assert found == ExecPlugin(
        command=str(tmp_path / "bin" / "login"),
        api_version="client.authentication.k8s.io/v1",
        args=("--once",),
        env=(("A", "b"),),
        install_hint="install it",
        cluster_info={
            "server": "https://api.example:6443",
            "certificate-authority-data": base64.b64encode(PEM).decode(),
            "config": {"audience": "x"},
        },
    )


V1 = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("cluster", "user", "complaint"),
    [
        ({"server": ""}, {}, "no server"),
        ({"server": "ftp://x"}, {}, "not an http"),
        ({"certificate-authority": "missing.crt"}, {}, r"missing\.crt does not exist"),
        ({"certificate-authority-data": "***"}, {}, "not base64"),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="},
            {},
            "insecure-skip-tls-verify and certificate-authority",
        ),
        ({"proxy-url": "socks5://x"}, {}, "socks5.*not supported"),
        ({}, {"client-certificate-data": "eA=="}, "must both be set"),
        ({}, {"auth-provider": {"name": "oidc"}}, "exec plugin instead"),
        ({}, {"token": "x", "username": "y"}, "only one way"),
        ({}, {"as-groups": ["x"]}, "need `as`"),
        ({}, {"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}, "v1alpha1.*not supp"),
        ({}, {"exec": {"apiVersion": V1}}, "no command"),
        ({}, {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Always"}}, "terminal"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path: Path, cluster: Json, user: Json, complaint: str) -> None:
    path = kubeconfig(tmp_path / "c", cluster=cluster, user=user)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "'one'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", r"not YAML \(line 1\)"),
        ("- a", "a mapping was expected"),
        ("", "no current-context"),
        ("clusters: [{}]", "has no name"),
        ("current-context: x", "'x'.*contexts.*none"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load(tmp_path / "c")
    assert str(tmp_path / "c") in str(caught.value)


def test_an_unknown_context_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'other'.*there: one"):
        load(kubeconfig(tmp_path / "c"), "other")


def test_without_any_configuration_the_reader_learns_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="butleradm local up"):
        config.load(environ={"HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match="not found"):
        load(tmp_path / "nowhere")


def test_the_home_kubeconfig_is_the_last_resort(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube" / "config", user={"token": "home"})
    assert config.load(environ={"HOME": str(tmp_path)}).token == "home"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "t"), ("ca.crt", PEM.decode()), ("namespace", "mine\n")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = config.load(environ=environ, service_account=tmp_path)
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "mine")
    assert (found.token_file, found.ca) == (tmp_path / "token", tmp_path / "ca.crt")


def test_secrets_do_not_show_in_a_repr(tmp_path: Path) -> None:
    found = load(kubeconfig(tmp_path / "c", user={"username": "u", "password": "hush"}))
    assert "hush" not in repr(found)
    assert "hush" not in repr(load(kubeconfig(tmp_path / "c", user={"token": "hush"})))
