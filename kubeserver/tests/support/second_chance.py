"""`--again-alone`: a few tests that failed are run once more, alone, when nothing else runs.

On a busy machine a test may wait in vain for something that comes a moment later. A test that passes then does not
fail the run, but it is a defect, and the summary names it, with what it said when it failed. There is no second chance
for a broken rule of safety ("broken rules" in what any test says), nor for many failures, nor after a crash.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

NEVER_AGAIN = ("broken rules", "crashed while running")
"""A rule of safety, and how xdist tells of a worker that is gone."""
MOST_AGAIN = 10
"""More failures than this are no accident."""
AGAIN = "passed only when run again"
BAD = ("failed", "error")
OPTION = "--again-alone"


def add_option(parser: pytest.Parser) -> None:
    """A conftest calls this: it registers the module when options are already read."""
    parser.addoption(OPTION, action="store_true", help="run a few failed tests once more, alone, and name them")


@pytest.hookimpl(trylast=True)  # when xdist has ended its workers
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if not config.getoption(OPTION) or hasattr(config, "workerinput"):
        return
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    assert terminal is not None
    stats: dict[str, list[pytest.TestReport]] = terminal.stats
    reports = [report for kind in BAD for report in stats.get(kind, ())]
    if not deserves(session.exitstatus, reports):
        return
    tests = sorted({without_group(report.nodeid) for report in reports})
    terminal.ensure_newline()
    terminal.write_line(f"{len(tests)} failed and are run once more, alone: {', '.join(tests)}", bold=True, flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    if subprocess.run(command, cwd=config.invocation_params.dir, check=False).returncode:
        return
    for kind in BAD:
        stats.pop(kind, None)
    stats[AGAIN] = reports
    session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get(AGAIN, ())
    if not reports:
        return
    terminalreporter.section("what failed at first", yellow=True)
    for report in reports:
        terminalreporter.section(f"{report.nodeid} ({report.when})", sep="_", yellow=True)
        terminalreporter.write_line(report.longreprtext)
    terminalreporter.section("DEFECTS: PASSED ONLY WHEN RUN AGAIN, ALONE", yellow=True, bold=True)
    for test in sorted({without_group(report.nodeid) for report in reports}):
        terminalreporter.write_line(f"  {test}", yellow=True, bold=True)


def deserves(exit_status: int, reports: Iterable[pytest.TestReport]) -> bool:
    """Whether what failed may be run again."""
    failed = list(reports)
    if exit_status != pytest.ExitCode.TESTS_FAILED or not failed:
        return False
    if len({without_group(report.nodeid) for report in failed}) > MOST_AGAIN:
        return False
    said = "\n".join(text for report in failed for text in (report.longreprtext, *dict(report.sections).values()))
    return not any(never in said for never in NEVER_AGAIN)


def without_group(node: str) -> str:
    """A test's id without the group that xdist adds to it, behind the parameters where it has some."""
    test, at, _ = node.rpartition("]@")
    if at:
        return f"{test}]"
    test, at, group = node.rpartition("@")
    return test if at and "]" not in group else node
