"""The examples that the program prints are those of the folder with examples, and make sense."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from butler.api.codec import from_json
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.cli.provider_examples import KEYS, example
from butler.providers.credentials import needed_keys
from butler.webhooks.providerconfig import Surroundings, judge

FOLDER = Path(__file__).parents[3] / "examples" / "providers"


def test_every_kind_has_one() -> None:
    assert {f"{kind}.yaml" for kind in KEYS} == {each.name for each in FOLDER.iterdir()}


@pytest.mark.parametrize("kind", list(KEYS))
def test_it_says_what_the_folder_says_and_would_be_admitted(kind: str) -> None:
    objects = list(yaml.safe_load_all(example(kind)))
    assert objects == list(yaml.safe_load_all((FOLDER / f"{kind}.yaml").read_text()))
    config = from_json(ProviderConfig, objects[-1])
    pools = {each["metadata"]["name"]: from_json(NetworkPool, each) for each in objects[:-1]}
    verdict = judge(None, config, Surroundings("butler-system", pools))
    assert not verdict.problems
    assert not [each for each in verdict.warnings if "there is no NetworkPool" in each]
    for key in needed_keys(config):
        assert f"{key}=" in KEYS[kind], "the comment names every key of the Secret"
