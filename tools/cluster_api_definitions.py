"""Fetch the custom resource definitions of Cluster API and of its providers, into a cache outside the checkout.

    python tools/cluster_api_definitions.py       fetch what is missing, print the folder with the definitions

The objects that Butler makes for a cluster are read by controllers of other projects, so tests install the real
definitions and let a real API server judge. They lie as YAML inside the projects' Go modules; `tools/cluster-api/` pins
the versions (go.mod) and the hashes (go.sum), and module_files.py says how they are taken out and where they are kept.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from build_kubernetes import BuildFailedError, UnavailableError
from module_files import Files, Progress, Source

RECIPE = Path(__file__).resolve().parent / "cluster-api"


def _infrastructure(*plurals: str) -> tuple[str, ...]:
    return tuple(f"infrastructure.cluster.x-k8s.io_{plural}.yaml" for plural in plurals)


_BASES = "config/crd/bases"
_CORE = "sigs.k8s.io/cluster-api"

SOURCES = (
    Source(
        _CORE,
        _BASES,
        tuple(
            f"cluster.x-k8s.io_{plural}.yaml"
            for plural in ("clusters", "machinedeployments", "machinesets", "machines")
        ),
    ),
    Source(
        _CORE,
        f"bootstrap/kubeadm/{_BASES}",
        ("bootstrap.cluster.x-k8s.io_kubeadmconfigtemplates.yaml", "bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml"),
    ),
    Source(
        "sigs.k8s.io/cluster-api-provider-aws/v2",
        _BASES,
        _infrastructure("awsclusters", "awsmachinetemplates", "awsmachines", "awsclusterstaticidentities"),
    ),
    Source(
        "sigs.k8s.io/cluster-api-provider-gcp",
        _BASES,
        _infrastructure("gcpclusters", "gcpmachinetemplates", "gcpmachines"),
    ),
    Source(
        "sigs.k8s.io/cluster-api-provider-azure",
        _BASES,
        _infrastructure("azureclusters", "azuremachinetemplates", "azuremachines", "azureclusteridentities"),
    ),
    Source(
        "github.com/nutanix-cloud-native/cluster-api-provider-nutanix",
        _BASES,
        _infrastructure("nutanixclusters", "nutanixmachinetemplates", "nutanixmachines"),
    ),
    Source(
        "github.com/ionos-cloud/cluster-api-provider-proxmox",
        _BASES,
        _infrastructure("proxmoxclusters", "proxmoxmachinetemplates", "proxmoxmachines"),
    ),
)


def pins() -> dict[str, str]:
    """The version of each module."""
    return dict(re.findall(r"^\t(\S+) (v\S+)$", (RECIPE / "go.mod").read_text(), re.MULTILINE))


def definitions() -> Files:
    versions = pins()
    return Files("cluster-api", RECIPE, {_CORE: versions.pop(_CORE), **versions}, SOURCES)


def fetch(progress: Progress = print) -> Path:
    """The folder with all definitions, one file each, fetching them first where they are missing."""
    return definitions().fetch(progress)


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
