"""Take files out of pinned Go modules, into a cache outside the checkout.

Other projects publish their custom resource definitions inside their Go modules. A recipe (a folder with a go.mod and
a go.sum) pins versions and hashes; `go mod download` fetches each module by itself and refuses one whose hash is
another. Nothing is compiled, and nothing of these projects is kept in the checkout.

The result is `~/.cache/butler/<name>/<version>-<hash of the recipe>/`, complete or not there at all (see
build_kubernetes.py for the cache, and for the two ways to fail: `UnavailableError` where tests skip,
`BuildFailedError` where they must fail).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_kubernetes import BuildFailedError, UnavailableError, cache_dir

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Where a module keeps its files, and which of them are wanted."""

    module: str
    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """Files that are fetched together."""

    name: str
    recipe: Path
    versions: Mapping[str, str]  # of each module; the first one names the result
    sources: Sequence[Source]

    @property
    def destination(self) -> Path:
        digest = hashlib.sha256(repr(tuple(self.sources)).encode())
        for file in ("go.mod", "go.sum"):
            digest.update((self.recipe / file).read_bytes())
        return cache_dir() / self.name / f"{next(iter(self.versions.values()))}-{digest.hexdigest()[:12]}"

    def fetch(self, progress: Progress = print) -> Path:
        """The folder with all files, fetching them first where they are missing."""
        target = self.destination
        if target.is_dir():
            return target
        go = shutil.which("go")
        if go is None:
            raise UnavailableError("there is no `go` on the PATH")
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.is_dir():
                self._fetch_into(go, target, progress)
        return target

    def _fetch_into(self, go: str, target: Path, progress: Progress) -> None:
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        try:
            scratch.chmod(0o755)
            folders = {module: self._download(go, module, progress) for module in self.versions}
            for source in self.sources:
                for file in source.files:
                    found = folders[source.module] / source.folder / file
                    if not found.is_file():
                        raise BuildFailedError(f"{source.module} has no {source.folder}/{file}")
                    shutil.copyfile(found, scratch / file)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _download(self, go: str, module: str, progress: Progress) -> Path:
        version = self.versions[module]
        progress(f"fetching {module} {version}")
        result = subprocess.run(
            [go, "mod", "download", "-json", f"{module}@{version}"],
            cwd=self.recipe, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "checksum mismatch" in result.stderr:
            raise BuildFailedError(f"{module} {version} is not what go.sum says:\n{result.stderr}")
        if result.returncode != 0:
            lines = (result.stderr + result.stdout).split("\n")
            why = next(filter(None, lines), "no reason given")
            raise UnavailableError(f"{module} {version} cannot be fetched: {why}")
        return Path(json.loads(result.stdout)["Dir"])
