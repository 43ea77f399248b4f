"""All everyday tests, in several pytest runs, five of them side by side.

Tests wait more than they compute, for watches, leases and servers, so five runs on two cores take a third of the time
of one. Whatever has "kubernetes" in its name runs on a real Kubernetes, everything else on the embedded server or on
none; either half is parted by what its tests mostly do. The longest begin first, beside those that wait most, and when
one ends, the next begins.
Together they are every everyday test, each once. The first run is shown as it goes, the others when they are done.

On a busy machine a test may wait in vain for something that comes a moment later. So a few tests that failed are run
once more, alone, when nothing else runs; a test that needed that is named at the end. A broken rule of safety ("broken
rules" in what a test says) is never given a second chance.

    python tools/run_tests.py [pytest options]
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
STORIES = ("tests/tenants", "tests/elastic", "tests/ipam", "tests/chaos")
"""Whole lives of clusters, and faults: tests that mostly wait."""
FACTS = ("tests/unit", "tests/model", "tests/kube", "tests/capi")
API_SERVER = ("kubeserver/tests",)
"""The API server alone: it has its own settings for pytest, so it runs apart."""
MACHINE = ("tests/local",)
"""Butler on one machine."""
PROMPTS = ("tests/cli",)
"""Every command, started again and again."""
PAGES = ("tests/server", "tests/console")
"""The console: its server, and its pages in a browser."""
AT_ONCE = 5
NEVER_AGAIN = "broken rules"
MOST_AGAIN = 10
"""More failures than this are no accident."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass
class Part:
    """One pytest run."""

    name: str
    folders: tuple[str, ...]
    which: str
    shown: bool = False
    said: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    reader: threading.Thread | None = None
    seconds: float = 0.0

    def start(self, options: list[str], *, tests: list[str] | None = None) -> None:
        chosen = tests or [*self.folders, "-k", self.which]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *chosen]
        began = time.monotonic()
        self.process = process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )

        def read() -> None:
            assert process.stdout is not None
            while piece := process.stdout.read(1):  # dots come one by one
                self.said.append(piece)
                if self.shown:
                    print(piece, end="", flush=True)
            self.seconds = time.monotonic() - began

        self.reader = threading.Thread(target=read)
        self.reader.start()

    def wait(self) -> int:
        assert self.process is not None
        assert self.reader is not None
        self.reader.join()
        return self.process.wait()

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    @property
    def text(self) -> str:
        return "".join(self.said)


def main(options: list[str]) -> int:
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    if set(settings["tool"]["pytest"]["ini_options"]["testpaths"]) != {*STORIES, *FACTS, *MACHINE, *PROMPTS, *PAGES}:
        sys.exit("tools/run_tests.py and testpaths in pyproject.toml name different folders: no test may be left out")
    build()
    parts = [
        Part("embedded, machine", MACHINE, "not kubernetes", shown=True),
        Part("embedded, prompts", PROMPTS, "not kubernetes and not every"),
        Part("Kubernetes, facts", (*FACTS, *MACHINE, *PROMPTS, *PAGES), "kubernetes"),
        Part("embedded, stories", STORIES, "not kubernetes"),
        Part("Kubernetes, stories", STORIES, "kubernetes"),
        Part("embedded, console", PAGES, "not kubernetes"),
        Part("embedded, every command", PROMPTS, "not kubernetes and every"),
        Part("embedded, facts", FACTS, "not kubernetes"),
        Part("kubeserver, alone", API_SERVER, "not kubernetes"),
        Part("kubeserver, beside Kubernetes", API_SERVER, "kubernetes"),
    ]
    codes: dict[str, int] = {}
    waiting = list(parts)
    running: list[Part] = []
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(waiting.pop(0))
                running[-1].start(options)
            time.sleep(0.2)
            for part in [item for item in running if item.has_ended]:
                running.remove(part)
                codes[part.name] = part.wait()
                if not part.shown:
                    print(f"\n\n{part.name}:\n{part.text}", flush=True)
    finally:
        for part in parts:
            if part.process is not None and part.process.poll() is None:
                part.process.send_signal(signal.SIGINT)  # pytest then stops the servers it started
                part.wait()
    print("\n".join(f"{part.name}: {part.seconds:.0f} s, exit code {codes[part.name]}" for part in parts))
    return again(parts, codes, options)


def again(parts: list[Part], codes: dict[str, int], options: list[str]) -> int:
    """Give the few that failed another chance, one run after the other, with nothing beside them."""
    bad = [part for part in parts if codes[part.name]]
    failed = {part.name: sorted(set(FAILED.findall(part.text))) for part in bad}
    count = sum(map(len, failed.values()))
    hopeless = any(codes[part.name] != 1 or not failed[part.name] or NEVER_AGAIN in part.text for part in bad)
    if not bad or hopeless or count > MOST_AGAIN:
        return next((codes[part.name] for part in bad), 0)
    named = [test for tests in failed.values() for test in tests]
    print(f"\n{count} failed and are run once more, alone: {', '.join(named)}", flush=True)
    for part in bad:
        second = Part(part.name, part.folders, part.which, shown=True)
        second.start(options, tests=failed[part.name])
        if code := second.wait():
            return code
    print("\nPASSED ONLY WHEN RUN AGAIN, ALONE (a machine that is too busy, or a test that is too impatient):")
    print("\n".join(f"  {test}" for test in named))
    return 0


def build() -> None:
    """What is real, in sight, as it may take minutes. Where it cannot be had, the tests that want it say so."""
    wanted = [
        ["build_kubernetes.py", "metallb"],
        ["cluster_api_definitions.py"],
        ["metallb_definitions.py"],
        ["install_browser.py"],
    ]
    if not any(os.environ.get(name) for name in ("BUTLER_TEST_KUBECONFIG", "KUBEBUILDER_ASSETS")):
        wanted.insert(0, ["build_kubernetes.py"])
    for script, *arguments in wanted:
        subprocess.run([sys.executable, HERE / script, *arguments], check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
