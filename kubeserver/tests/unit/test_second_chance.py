"""What `--again-alone` does, seen from outside: small runs of pytest with the plugin, with workers and without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import second_chance

SUPPORT = Path(second_chance.__file__).parent
TOOLS = SUPPORT.parents[2] / "tools"
CONFTEST = """
import second_chance
import workers

def pytest_addoption(parser):
    second_chance.add_option(parser)

def pytest_configure(config):
    config.pluginmanager.register(second_chance)
    config.pluginmanager.register(workers)
"""
IMPATIENT = """
from pathlib import Path
import pytest

@pytest.mark.xdist_group("some group")
@pytest.mark.parametrize("text", ["a@b"])
def test_impatient(text):
    before = Path(__file__).with_name("before")
    if not before.exists():
        before.touch()
        raise AssertionError("SAID")

def test_patient():
    pass
"""


def run(folder: Path, tests: str, *options: str) -> tuple[int, str]:
    settings = f"pythonpath = {SUPPORT} {TOOLS}\naddopts = --strict-markers --strict-config\n"
    (folder / "pytest.ini").write_text(f"[pytest]\n{settings}")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(tests)
    needless = [word for plugin in ("asyncio", "cacheprovider", "schemathesis") for word in ("-p", f"no:{plugin}")]
    command = [sys.executable, "-m", "pytest", "-q", *needless, *options]
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")], ids=["alone", "workers"])
def test_a_test_that_passes_when_run_again_is_a_defect_with_a_name(tmp_path: Path, workers: tuple[str, ...]) -> None:
    code, said = run(tmp_path, IMPATIENT.replace("SAID", "it was late"), "--again-alone", *workers)
    assert code == 0, said
    _, _, summary = said.partition("what failed at first")
    assert "it was late" in summary, said
    assert "DEFECTS: PASSED ONLY WHEN RUN AGAIN, ALONE" in summary, said
    assert "\n  test_it.py::test_impatient[a@b]\n" in summary, said
    assert "1 passed only when run again" in said.splitlines()[-1], said


def test_nothing_is_run_again_unless_that_is_asked_for(tmp_path: Path) -> None:
    code, said = run(tmp_path, IMPATIENT)
    assert code == 1, said
    assert "again" not in said, said


def test_a_broken_rule_of_safety_is_never_run_again(tmp_path: Path) -> None:
    code, said = run(tmp_path, IMPATIENT.replace("SAID", "broken rules: one address, two holders"), "--again-alone")
    assert code == 1, said
    assert "1 failed, 1 passed" in said.splitlines()[-1], said


def test_a_broken_rule_that_was_only_printed_is_never_run_again(tmp_path: Path) -> None:
    tests = IMPATIENT.replace("        before.touch()", "        before.touch(); print('broken rules')")
    code, said = run(tmp_path, tests, "--again-alone")
    assert code == 1, said


def test_a_rule_that_breaks_when_a_fixture_ends_is_never_run_again(tmp_path: Path) -> None:
    tests = """
import pytest
from pathlib import Path

@pytest.fixture
def estate():
    yield
    before = Path(__file__).with_name("before")
    if not before.exists():
        before.touch()
        raise AssertionError("broken rules: one address, two holders")

def test_it(estate):
    pass
"""
    code, said = run(tmp_path, tests, "--again-alone")
    assert code == 1, said
    assert "1 passed, 1 error" in said.splitlines()[-1], said


def test_a_test_that_fails_again_has_failed(tmp_path: Path) -> None:
    code, said = run(tmp_path, "def test_it():\n    raise AssertionError('always')\n", "--again-alone")
    assert code == 1, said
    assert "1 failed and are run once more, alone: test_it.py::test_it" in said
    assert "1 failed" in said.splitlines()[-1], said


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    tests = "import pytest\n@pytest.mark.parametrize('n', range(11))\ndef test_it(n):\n    raise AssertionError\n"
    code, said = run(tmp_path, tests, "--again-alone")
    assert code == 1, said
    assert "once more" not in said, said


def test_a_worker_that_crashed_is_no_accident(tmp_path: Path) -> None:
    tests = IMPATIENT.replace('raise AssertionError("SAID")', "import os; os._exit(3)")
    code, said = run(tmp_path, tests, "--again-alone", "-n", "2", "--dist", "loadgroup")
    assert code == 1, said
    assert "once more" not in said, said
