"""Build the programs that the tests run against, from pinned Go modules, into a cache outside the checkout.

    python tools/build_kubernetes.py              build what is missing, print the folder with the programs

A *bundle* is a set of programs that are built and versioned together. Each folder under `tools/kubernetes/` (what
tests run on), `tools/metallb/` (what serves a tenant's Services), `tools/peers/` (what benchmarks compare with) and
`tools/prometheus/` (what checks the alert rules) is a Go module of a few lines whose go.mod pins the versions and names
the programs as `tool`s, and whose go.sum pins the hashes; no Go code is written or copied here. To build one more
program, add a folder with a go.mod and a line in `BUNDLES`.

The result is kept under `~/.cache/butler/<bundle>/<versions>-<hash of the recipe>/bin` (`BUTLER_CACHE_DIR`
replaces `~/.cache/butler`), so a changed recipe never meets old programs. A build happens in a temporary folder
and is renamed into place when all of it is done; a lock makes a second builder wait and then find the result.

There are two ways to fail, because callers treat them differently: `UnavailableError` (no Go, or the modules cannot
be fetched: tests skip and say so) and `BuildFailedError` (the recipe is broken: tests must fail).
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RECIPES = tuple(Path(__file__).resolve().parent / name for name in ("kubernetes", "metallb", "peers", "prometheus"))

Progress = Callable[[str], None]


class UnavailableError(Exception):
    """Go or the modules cannot be had on this machine; nothing is wrong with the recipe."""


class BuildFailedError(Exception):
    """The modules are here, but they do not build: a defect of the recipe."""


@dataclass(frozen=True)
class Program:
    name: str
    folder: str  # of the Go module under one of RECIPES
    package: str


@dataclass(frozen=True)
class Bundle:
    name: str
    programs: tuple[Program, ...]
    versions: tuple[tuple[str, str], ...]  # (folder, Go module) whose versions name the build

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(sorted({program.folder for program in self.programs}))


KUBERNETES = Bundle(
    name="kubernetes",
    programs=(
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
        Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ),
    versions=(("kubernetes", "k8s.io/kubernetes"), ("etcd", "go.etcd.io/etcd/server/v3")),
)

METALLB = Bundle(
    name="metallb",
    programs=(Program("metallb-controller", "controller", "go.universe.tf/metallb/controller"),),
    versions=(("controller", "go.universe.tf/metallb"),),
)

IN_CLUSTER_IPAM = Bundle(
    name="in-cluster-ipam",
    programs=(Program("in-cluster-ipam", "in-cluster-ipam", "sigs.k8s.io/cluster-api-ipam-provider-in-cluster"),),
    versions=(("in-cluster-ipam", "sigs.k8s.io/cluster-api-ipam-provider-in-cluster"),),
)

PROMETHEUS = Bundle(
    name="prometheus",
    programs=(Program("promtool", "promtool", "github.com/prometheus/prometheus/cmd/promtool"),),
    versions=(("promtool", "github.com/prometheus/prometheus"),),
)

BUNDLES = {bundle.name: bundle for bundle in (KUBERNETES, METALLB, IN_CLUSTER_IPAM, PROMETHEUS)}


def cache_dir() -> Path:
    """Where builds and unpacked tools are kept between checkouts."""
    override = os.environ.get("BUTLER_CACHE_DIR")
    if override:
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "butler"


def recipe(folder: str) -> Path:
    """The Go module of that name."""
    return next(root / folder for root in RECIPES if (root / folder / "go.mod").is_file())


def pinned_version(folder: str, module: str) -> str:
    text = (recipe(folder) / "go.mod").read_text()
    found = re.search(rf"^(?:require)?\s*{re.escape(module)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise BuildFailedError(f"{recipe(folder) / 'go.mod'} does not pin {module}")
    return found.group(1)


def recipe_hash(bundle: Bundle) -> str:
    """Everything that decides what comes out: the pins, the hashes, this file's flags and the platform."""
    digest = hashlib.sha256(repr((bundle, sys.platform, os.uname().machine)).encode())
    for folder in bundle.folders:
        for file in ("go.mod", "go.sum"):
            digest.update((recipe(folder) / file).read_bytes())
        digest.update(repr(build_flags(folder)).encode())
    return digest.hexdigest()[:12]


def build_flags(folder: str) -> list[str]:
    """Small, reproducible programs; Kubernetes is told its version, which it otherwise learns from git."""
    linker = "-s -w"
    if folder == "kubernetes":
        version = pinned_version("kubernetes", "k8s.io/kubernetes")
        major, minor, _ = version.removeprefix("v").split(".", 2)
        facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            linker += "".join(f" -X {package}.{name}={value}" for name, value in facts.items())
    return [*build_tags(folder), "-trimpath", "-buildvcs=false", f"-ldflags={linker}"]


def build_tags(folder: str) -> list[str]:
    """Leave out what is not needed here: promtool would bring the SDK of every cloud it can discover targets in."""
    return ["-tags=remove_all_sd"] if folder == "promtool" else []


def destination(bundle: Bundle) -> Path:
    versions = "-".join(pinned_version(folder, module) for folder, module in bundle.versions)
    return cache_dir() / bundle.name / f"{versions}-{recipe_hash(bundle)}"


def build(bundle: Bundle = KUBERNETES, progress: Progress = print) -> Path:
    """Return the folder with the bundle's programs, building them first where they are missing."""
    target = destination(bundle)
    if (target / "bin").is_dir():
        return target / "bin"
    go = shutil.which("go")
    if go is None:
        raise UnavailableError("there is no `go` on the PATH")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent / f"{target.name}.lock", progress):
        if not (target / "bin").is_dir():
            _build_into(go, bundle, target, progress)
    return target / "bin"


def _build_into(go: str, bundle: Bundle, target: Path, progress: Progress) -> None:
    names = ", ".join(program.name for program in bundle.programs)
    progress(f"building {names} from Go modules (some minutes, once) into {target}")
    began = time.monotonic()
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        scratch.chmod(0o755)
        (scratch / "bin").mkdir()
        for program in bundle.programs:
            _build_program(go, program, scratch / "bin" / program.name, progress)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    progress(f"built {names} in {time.monotonic() - began:.0f} s")


def _build_program(go: str, program: Program, output: Path, progress: Progress) -> None:
    module = recipe(program.folder)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    progress(f"{program.name}: fetching modules")
    listing = subprocess.run(
        [go, "list", "-deps", *build_tags(program.folder), program.package],
        cwd=module, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode != 0:
        raise UnavailableError(f"the Go modules of {program.name} cannot be fetched: {_last_line(listing.stderr)}")
    total = len(listing.stdout.split())
    command = [go, "build", "-v", *build_flags(program.folder), "-o", str(output), program.package]
    with subprocess.Popen(command, cwd=module, env=environment, stderr=subprocess.PIPE, text=True) as process:
        tail = _follow(process, program.name, total, progress)
    if process.returncode != 0:
        raise BuildFailedError(f"{program.name} does not build:\n{tail}")


def _follow(process: subprocess.Popen[str], name: str, total: int, progress: Progress) -> str:
    """`go build -v` names each package as it is compiled: count them, and keep the end for an error."""
    assert process.stderr is not None
    lines: list[str] = []
    reported = time.monotonic()
    for line in process.stderr:
        lines.append(line)
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            progress(f"{name}: {len(lines)} of at most {total} packages compiled")
    process.wait()
    return "".join(lines[-20:])


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"another build is running; waiting for it ({path})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Build what tests run on, or a peer.")
    parser.add_argument("bundle", nargs="?", default=KUBERNETES.name, choices=sorted(BUNDLES))
    chosen = parser.parse_args().bundle
    try:
        binaries = build(BUNDLES[chosen], progress=lambda text: print(text, file=sys.stderr, flush=True))
    except UnavailableError as error:
        print(f"cannot build {chosen} here: {error}", file=sys.stderr)
        return 3
    except BuildFailedError as error:
        print(error, file=sys.stderr)
        return 1
    print(binaries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
