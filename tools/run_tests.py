"""All everyday tests, in two pytest runs side by side: those on a real Kubernetes, and the rest.

Tests wait more than they compute, for watches, leases and servers, so two runs take little more than half the time of
one. Whatever has "kubernetes" in its name is one half and everything else the other: together they are every test,
each once. The half with Kubernetes shows what it has to say when the other is done.

    python tools/run_tests.py [pytest options]
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


def main(options: list[str]) -> int:
    if not any(os.environ.get(name) for name in ("BUTLER_TEST_KUBECONFIG", "KUBEBUILDER_ASSETS")):
        # First, and in sight, as it may take minutes. Where it cannot be had, the tests that want it say so.
        subprocess.run([sys.executable, Path(__file__).with_name("build_kubernetes.py")], check=False)
    subprocess.run([sys.executable, Path(__file__).with_name("build_kubernetes.py"), "metallb"], check=False)
    for definitions in ("cluster_api_definitions.py", "metallb_definitions.py"):
        subprocess.run([sys.executable, Path(__file__).with_name(definitions)], check=False)
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    with tempfile.TemporaryFile("w+") as said:
        beside = subprocess.Popen([*pytest, "-k", "kubernetes"], stdout=said, stderr=subprocess.STDOUT)
        try:
            here = subprocess.run([*pytest, "-k", "not kubernetes"], check=False).returncode
            print("\nWaiting for the tests on a real Kubernetes ...", flush=True)
            there = beside.wait()
        finally:
            if beside.poll() is None:
                beside.send_signal(signal.SIGINT)  # pytest then stops the servers it started
                beside.wait()
            said.seek(0)
            print(said.read(), flush=True)
    return here or there


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
