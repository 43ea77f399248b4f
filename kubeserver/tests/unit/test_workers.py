"""Groups of tests as pytest-xdist keeps them, seen from outside: a small run of pytest with two workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import workers

SUPPORT = Path(workers.__file__).parent
TOOLS = SUPPORT.parents[2] / "tools"
CONFTEST = """
import os
from pathlib import Path
import pytest
import workers

def pytest_configure(config):
    config.stash[workers.FIRST] = ("test_b.py",)
    config.pluginmanager.register(workers)

@pytest.fixture(scope="package")
def estate():
    return 1

def pytest_runtest_setup(item):
    with Path(item.config.rootpath, "ran").open("a") as ran:
        print(os.environ["PYTEST_XDIST_WORKER"], item.path.name, file=ran)
"""
MODULE = """
import time
import pytest

@pytest.mark.parametrize("number", range(6))
def test_it(number):
    time.sleep(0.05)
"""
SHARED = MODULE.replace("number):", "number, estate):")


def test_a_module_stays_on_one_worker_and_so_do_those_who_share_what_a_folder_has(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {SUPPORT} {TOOLS}\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name, text in {"a": MODULE, "b": MODULE, "c": MODULE, "shared_1": SHARED, "shared_2": SHARED}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    needless = [word for plugin in ("asyncio", "cacheprovider", "schemathesis") for word in ("-p", f"no:{plugin}")]
    side_by_side = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *needless, *side_by_side],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    places: dict[str, set[str]] = {}
    for worker, module in ran:
        places.setdefault("shared" if "shared" in module else module, set()).add(worker)
    assert {len(found) for found in places.values()} == {1}, places
    assert set.union(*places.values()) == {"gw0", "gw1"}
    assert "test_b.py" in {module for _, module in ran[:2]}, "what is to begin first does"
