"""Fetch MetalLB's custom resource definitions, of the version whose controller the tests run, into the same cache.

    python tools/metallb_definitions.py       fetch what is missing, print the folder with the definitions

They lie as YAML in the module that `tools/metallb/controller/` pins for the controller itself, so that the two cannot
differ; module_files.py says how they are taken out and where they are kept.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from build_kubernetes import BuildFailedError, UnavailableError, recipe
from module_files import Files, Progress, Source

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "github.com/metallb/metallb"
PLURALS = (
    "bfdprofiles",
    "bgpadvertisements",
    "bgppeers",
    "communities",
    "configurationstates",
    "ipaddresspools",
    "l2advertisements",
    "servicebgpstatuses",
    "servicel2statuses",
)
SOURCES = (Source(MODULE, "config/crd/bases", tuple(f"metallb.io_{plural}.yaml" for plural in PLURALS)),)


def version() -> str:
    """The version that is really fetched: the one on the right of the recipe's `replace`."""
    text = (recipe("controller") / "go.mod").read_text()
    found = re.search(rf"=> {re.escape(MODULE)} (v\S+)", text)
    if found is None:
        raise BuildFailedError(f"{recipe('controller') / 'go.mod'} does not pin {MODULE}")
    return found.group(1)


def fetch(progress: Progress = print) -> Path:
    """The folder with all definitions, one file each, fetching them first where they are missing."""
    return Files("metallb-definitions", recipe("controller"), {MODULE: version()}, SOURCES).fetch(progress)


def main() -> int:
    try:
        print(fetch(progress=lambda text: print(text, file=sys.stderr, flush=True)))
    except UnavailableError as error:
        print(f"cannot fetch the definitions here: {error}", file=sys.stderr)
        return 3
    except BuildFailedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
