"""The examples that the program prints are those of the folder with examples, and make sense."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from butler.api.codec import from_json
from butler.api.networkpool import NetworkPool
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfig
from butler.cli.commands.shared.provider_examples import KEYS, example
from butler.providers.credentials import needed_keys
from butler.reports.provider.findings import SecretSeen, findings
from butler.rules.provider.admission import Surroundings, judge

FOLDER = Path(__file__).parents[3] / "examples" / "providers"


def test_every_kind_has_one() -> None:
    assert {f"{kind}.yaml" for kind in KEYS} == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("kind", list(KEYS))
def test_it_says_what_the_folder_says_and_would_be_admitted(kind: str) -> None:
    objects = list(yaml.safe_load_all(example(kind)))
    assert objects == list(yaml.safe_load_all((FOLDER / f"{kind}.yaml").read_text()))
    config = from_json(ProviderConfig, objects[-1])
    pools = {obj["metadata"]["name"]: from_json(NetworkPool, obj) for obj in objects[:-1]}
    verdict = judge(None, config, Surroundings("butler-system", pools))
    assert not verdict.problems
    assert not [warning for warning in verdict.warnings if "there is no NetworkPool" in warning]
    for key in needed_keys(config):
        assert f"{key}=" in KEYS[kind], "the comment names every key of the Secret"


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("nutanix", {"username": b"butler", "password": b"pass"}),
        ("proxmox", {"username": b"butler@pve!token", "password": b"11111111-2222-3333-4444-555555555555"}),
        ("aws", {"accessKeyID": b"AKIAIOSFODNN7EXAMPLE", "secretAccessKey": b"w" * 40}),
    ],
)
def test_with_credentials_of_the_right_shape_nothing_is_wrong_with_it(kind: str, secret: dict[str, bytes]) -> None:
    objects = list(yaml.safe_load_all(example(kind)))
    pools = {obj["metadata"]["name"]: from_json(NetworkPool, obj) for obj in objects[:-1]}
    config, seen = from_json(ProviderConfig, objects[-1]), SecretSeen(Key("butler-system", kind), secret)
    found = findings(config, pools, (), seen, "butler-system", stored=False)
    assert [str(finding) for finding in found if finding.severity == "problem"] == []
