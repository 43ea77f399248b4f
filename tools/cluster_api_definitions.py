"""Fetch the custom resource definitions of Cluster API and of its providers, into a cache outside the checkout.

    python tools/cluster_api_definitions.py       fetch what is missing, print the folder with the definitions

The objects that Butler makes for a cluster are read by controllers of other projects, so tests install the real
definitions and let a real API server judge. They lie as YAML inside the projects' Go modules. `tools/cluster-api/`
pins the versions (go.mod) and the hashes (go.sum); `go mod download` fetches each module by itself and refuses one
whose hash is another. Nothing is compiled, and nothing of these projects is kept in the checkout.

The result is `~/.cache/butler/cluster-api/<version>-<hash of the recipe>/` (see build_kubernetes.py for the cache, and
for the two ways to fail: `UnavailableError` where tests skip, `BuildFailedError` where they must fail).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from build_kubernetes import BuildFailedError, UnavailableError, cache_dir

RECIPE = Path(__file__).resolve().parent / "cluster-api"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Where a module keeps its definitions, and which of them are wanted."""

    module: str
    folder: str
    files: tuple[str, ...]


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


def destination() -> Path:
    digest = hashlib.sha256(repr(SOURCES).encode())
    for file in ("go.mod", "go.sum"):
        digest.update((RECIPE / file).read_bytes())
    return cache_dir() / "cluster-api" / f"{pins()[_CORE]}-{digest.hexdigest()[:12]}"


def fetch(progress: Progress = print) -> Path:
    """The folder with all definitions, one file each, fetching them first where they are missing."""
    target = destination()
    if target.is_dir():
        return target
    go = shutil.which("go")
    if go is None:
        raise UnavailableError("there is no `go` on the PATH")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _fetch_into(go, target, progress)
    return target


def _fetch_into(go: str, target: Path, progress: Progress) -> None:
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        scratch.chmod(0o755)
        folders = {module: _download(go, module, version, progress) for module, version in pins().items()}
        for source in SOURCES:
            for file in source.files:
                found = folders[source.module] / source.folder / file
                if not found.is_file():
                    raise BuildFailedError(f"{source.module} has no {source.folder}/{file}")
                shutil.copyfile(found, scratch / file)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _download(go: str, module: str, version: str, progress: Progress) -> Path:
    progress(f"fetching {module} {version}")
    result = subprocess.run(
        [go, "mod", "download", "-json", f"{module}@{version}"],
        cwd=RECIPE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "checksum mismatch" in result.stderr:
        raise BuildFailedError(f"{module} {version} is not what go.sum says:\n{result.stderr}")
    if result.returncode != 0:
        lines = (result.stderr + result.stdout).split("\n")
        raise UnavailableError(f"{module} {version} cannot be fetched: {next(filter(None, lines), 'no reason given')}")
    return Path(json.loads(result.stdout)["Dir"])


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
