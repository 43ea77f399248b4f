"""Settings that the schema lets pass and no provider could use."""

from __future__ import annotations

from typing import Any

import pytest

from butler.api.codec import from_json, to_json
from butler.api.providerconfig import ProviderConfig, ProviderConfigSpec
from butler.rules.provider.settings import foreign_secret, nutanix_url, secret_not_for, settings_problems
from unit.providers.given import BLOCKS, config


@pytest.mark.parametrize("provider", BLOCKS)
def test_usual_settings_are_fine(provider: str) -> None:
    assert settings_problems(config(provider).spec) == []


@pytest.mark.parametrize(
    ("provider", "settings", "field", "said"),
    [
        ("nutanix", {"clusterUUID": "prod"}, "spec.nutanix.clusterUUID", "'prod' is no UUID"),
        ("nutanix", {"imageUUID": "x"}, "spec.nutanix.imageUUID", "is no UUID"),
        ("nutanix", {"endpoint": "http://prism"}, "spec.nutanix.endpoint", "would send the credentials unprotected"),
        ("nutanix", {"endpoint": "https://a:b@prism"}, "spec.nutanix.endpoint", "must not hold a user name"),
        ("nutanix", {"endpoint": "https://"}, "spec.nutanix.endpoint", "is not the URL of a server"),
        ("nutanix", {"endpoint": "https://prism:x"}, "spec.nutanix.endpoint", "is not a URL"),
        ("nutanix", {"endpoint": "https://p:9441", "port": 9442}, "spec.nutanix.port", "9442 is not the port"),
        ("proxmox", {"endpoint": "https://pve?x=1"}, "spec.proxmox.endpoint", "is not the URL of a server"),
        (
            "proxmox",
            {"endpoint": "https://pve:8006/api2/json"},
            "spec.proxmox.endpoint",
            "must name the server alone: leave out /api2/json",
        ),
        ("harvester", {"endpoint": "harvester"}, "spec.harvester.endpoint", "is not the URL of a server"),
        ("aws", {"region": "evil.example.com/"}, "spec.aws.region", "is no region"),
        ("azure", {"subscriptionID": "Pay-As-You-Go"}, "spec.azure.subscriptionID", "is no UUID"),
    ],
)
def test_unusable_settings_are_named(provider: str, settings: dict[str, Any], field: str, said: str) -> None:
    (problem,) = settings_problems(config(provider, **settings).spec)
    assert problem.field == field
    assert said in problem.message


def test_harvester_may_be_behind_a_path() -> None:
    behind = config("harvester", endpoint="https://rancher.example.com/k8s/clusters/c-1")
    assert settings_problems(behind.spec) == []


def test_a_laboratory_may_do_without_tls() -> None:
    assert settings_problems(config("proxmox", endpoint="http://pve:8006", insecure=True).spec) == []
    assert settings_problems(config("proxmox", endpoint="http://pve:8006").spec) != []


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [("https://prism", "https://prism:9440"), ("https://prism:443/", "https://prism:443")],
)
def test_the_port_of_prism_may_stand_in_the_url(endpoint: str, url: str) -> None:
    settings = config("nutanix", endpoint=endpoint).spec.nutanix
    assert settings is not None
    assert nutanix_url(settings) == url


def test_only_the_home_namespace_may_point_at_secrets_elsewhere() -> None:
    spec = from_json(
        ProviderConfigSpec,
        {"provider": "aws", "credentialsRef": {"name": "s", "namespace": "butler-system"}, "aws": {"region": "x"}},
    )
    problem = foreign_secret(spec, "team-a", "butler-system")
    assert problem is not None
    assert problem.field == "spec.credentialsRef.namespace"
    assert foreign_secret(spec, "butler-system", "butler-system") is None
    assert foreign_secret(config("aws").spec, "team-a", "butler-system") is None


# For whom a Secret is.

CONFIGS, HOSTS = "butler.butlerlabs.dev/provider-configs", "butler.butlerlabs.dev/hosts"


def naming(kind: str, secret: str | None = None, **settings: object) -> ProviderConfig:
    made = to_json(config(kind, name="lab"))
    made["metadata"]["namespace"] = "butler-system"
    made["spec"]["credentialsRef"] = {"name": "login", **({"namespace": secret} if secret else {})}
    made["spec"][kind] |= settings
    return from_json(ProviderConfig, made)


@pytest.mark.parametrize(
    ("annotations", "allowed"),
    [
        ({}, False),
        ({CONFIGS: "butler-system/lab"}, True),
        ({CONFIGS: "other/x, butler-system/lab"}, True),
        ({CONFIGS: "butler-system/lab2"}, False),
        ({CONFIGS: "lab"}, False),
        ({CONFIGS: "*"}, False),
    ],
)
def test_a_secret_of_another_namespace_says_which_providers_may_use_it(
    annotations: dict[str, str], allowed: bool
) -> None:
    assert (secret_not_for(naming("aws", "vault"), annotations) == "") is allowed
    assert secret_not_for(naming("aws"), annotations) == "", "its own namespace's may be used"


@pytest.mark.parametrize(
    ("endpoint", "hosts", "allowed"),
    [
        ("https://prism.example.com", "", True),
        ("https://prism.example.com", "prism.example.com", True),
        ("https://PRISM.example.com", "prism.EXAMPLE.com", True),
        ("https://prism.example.com", "prism.example.com:9440", True),
        ("https://prism.example.com:443", "prism.example.com:9440", False),
        ("https://mine.example.com", "prism.example.com", False),
        ("https://prism.example.com.mine.example.com", "prism.example.com", False),
        ("https://[2001:db8::1]", "[2001:db8::1]:9440", True),
    ],
)
def test_credentials_go_where_their_secret_says(endpoint: str, hosts: str, allowed: bool) -> None:
    annotations = {HOSTS: hosts} if hosts else {}
    assert (secret_not_for(naming("nutanix", endpoint=endpoint), annotations) == "") is allowed


@pytest.mark.parametrize(
    ("endpoint", "server", "hosts", "allowed"),
    [
        (None, "https://harvester.example.com", "", True),
        ("https://harvester.example.com", "https://harvester.example.com:443/k8s", "", True),
        ("https://mine.example.com", "https://harvester.example.com", "", False),
        ("https://harvester.example.com:8443", "https://harvester.example.com", "", False),
        ("https://vip.example.com", "https://harvester.example.com", "vip.example.com", True),
        ("https://mine.example.com", "https://harvester.example.com", "vip.example.com", False),
    ],
)
def test_a_kubeconfig_goes_to_the_server_that_it_names(
    endpoint: str | None, server: str, hosts: str, allowed: bool
) -> None:
    found = naming("harvester", **({"endpoint": endpoint} if endpoint else {}))
    assert (secret_not_for(found, {HOSTS: hosts} if hosts else {}, server) == "") is allowed
