"""What the pages about tenants and providers say, held against the code: tables, messages, examples and Secrets."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from blueprints import CREDENTIALS, KUBECONFIG, PROVIDERS, blueprint
from butler.api.codec import from_json
from butler.api.labels import ProviderReason
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import DeletionStage, OSType, TenantCluster, TenantClusterPhase
from butler.capi.objects import objects
from butler.providers import credentials
from butler.rules.tenant.blueprint import Unbuildable
from pages import ROOT, steps

if TYPE_CHECKING:
    from butler.api.objects import Json

TENANTS = (ROOT / "docs/tenants.md").read_text()
PROVIDER_PAGE = (ROOT / "docs/providers.md").read_text()
SECRETS = [step.command for step in steps(ROOT / "docs/providers.md") if "create secret" in step.command]
PROVIDER_PROSE = re.sub(r"```.*?```", "", PROVIDER_PAGE, flags=re.DOTALL)
ANYTHING = re.compile(r"\.\.\.|<[^>]*>|\d+|waits for|load-balancer addresses|node addresses")
"""What stands for something else in a message, or is put together from parts."""
SHORTEST = 8
"""A piece of a message that is shorter than this proves nothing."""


def section(page: str, heading: str) -> str:
    """All that stands under a heading, up to the next of its rank."""
    return page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


def first_cells(text: str) -> list[str]:
    return [cell for cell in re.findall(r"^\| (.+?) \| ", text, re.MULTILINE) if cell.startswith("`")]


def words(text: str) -> list[str]:
    return [cell.strip("`") for cell in first_cells(text)]


def example(provider: str) -> ProviderConfig:
    documents = yaml.safe_load_all((ROOT / f"examples/providers/{provider}.yaml").read_text())
    (found,) = (document for document in documents if document["kind"] == "ProviderConfig")
    return from_json(ProviderConfig, found)


# Tables.


def test_the_page_explains_every_phase_and_condition() -> None:
    explained = words(section(TENANTS, "Phases and conditions"))
    phases, conditions = explained[: len(TenantClusterPhase)], explained[len(TenantClusterPhase) :]
    assert set(phases) == set(TenantClusterPhase)
    known = set(TenantCluster.definition.conditions)
    assert set(conditions) == known


def test_the_page_lists_the_stages_of_a_deletion_in_their_order() -> None:
    assert words(section(TENANTS, "Deleting")) == [stage.value for stage in DeletionStage]


def test_the_page_names_every_reason_why_credentials_do_not_hold() -> None:
    named = set(re.findall(r"`(\w+)`", section(PROVIDER_PAGE, "Conditions")))
    holding = {ProviderReason.READY, ProviderReason.COMPLETE, ProviderReason.ACCEPTED, ProviderReason.NOT_NEEDED}
    told_elsewhere = {ProviderReason.VALIDATION_FAILED, ProviderReason.DELETING}
    assert set(ProviderReason) - holding - told_elsewhere - named == set()


# Messages.


def sources() -> str:
    """The code that tells people something, with texts that go over several lines made one."""
    folders = ("controllers/tenantcluster", "rules/tenant", "rules/provider", "capi", "providers")
    files = [path for folder in folders for path in sorted((ROOT / "src/butler" / folder).glob("*.py"))]
    text = "\n".join(path.read_text() for path in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def troubles() -> list[str]:
    return [
        message
        for cell in re.findall(r"^\| (`.+?) \| ", section(TENANTS, "Troubleshooting"), re.MULTILINE)
        for message in re.findall(r"`([^`]+)`", cell)
    ]


@pytest.mark.parametrize("message", troubles())
def test_a_message_that_the_page_explains_is_one_that_butler_gives(message: str) -> None:
    code = sources()
    pieces = [piece.strip(" :,;()") for piece in ANYTHING.split(message)]
    for piece in pieces:
        assert len(piece) < SHORTEST or piece in code, piece


# Examples.


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_cluster_can_be_built_on_the_example_of_a_provider(provider: str) -> None:
    plan = replace(blueprint(provider), provider=example(provider), credentials=CREDENTIALS[provider])
    assert objects(plan)


def is_built(provider: str, system: OSType) -> bool:
    """Whether an operating system is possible on a provider; other settings may still be missing for it."""
    machine = {"os": {"type": system.value}}
    try:
        objects(blueprint(provider, cluster={"workers": {"machineTemplate": machine}}))
    except Unbuildable as error:
        return error.field != "spec.workers.machineTemplate.os.type"
    return True


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_table_of_operating_systems_is_true(provider: str) -> None:
    table = section(PROVIDER_PAGE, "What is refused, and why so early")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|$", table, re.MULTILINE))
    for system in (OSType.ROCKY, OSType.FLATCAR, OSType.TALOS):
        promised = rows[system] == "everywhere" or provider in rows[system].split(", ")
        assert is_built(provider, system) == promised, system


# Secrets.


def service_account() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return json.dumps({"type": "service_account", "client_email": "a@b.example", "private_key": pem})


def read_command(line: str) -> tuple[str, dict[str, bytes]]:
    """The name of the Secret, and its data, that `kubectl create secret generic` would make."""
    files = {"harvester.kubeconfig": KUBECONFIG, "service-account.json": service_account()}
    name, *options = shlex.split(line.removeprefix("kubectl create secret generic "))
    data = {}
    for option in options:
        if match := re.fullmatch(r"--from-(literal|file)=([^=]+)=(.*)", option):
            data[match[2]] = (match[3] if match[1] == "literal" else files[match[3]]).encode()
    return name, data


@pytest.mark.parametrize("line", SECRETS, ids=lambda line: line.split()[4])
def test_a_secret_made_as_the_page_says_holds_what_its_provider_needs(line: str) -> None:
    name, data = read_command(line)
    config = example(name)
    assert config.spec.credentials_ref is not None
    assert config.spec.credentials_ref.name == name
    assert credentials.check(config, data) == []


def test_the_page_makes_a_secret_for_every_provider() -> None:
    assert sorted(read_command(line)[0] for line in SECRETS) == sorted(PROVIDERS)


def test_every_setting_of_a_provider_is_named_on_the_page() -> None:
    schema: Json = yaml.safe_load((ROOT / "charts/butler/crds/butler.butlerlabs.dev_providerconfigs.yaml").read_text())
    spec = schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    named = " ".join(re.findall(r"`([^`]+)`", PROVIDER_PROSE))
    for provider in PROVIDERS:
        missing = [field for field in spec[provider]["properties"] if field not in named]
        assert missing == [], provider
    assert [field for field in spec["network"]["properties"] if field not in named] == []
