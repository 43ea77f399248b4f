"""Everything real that tests run on, built or fetched before the first test, in sight, as it may take minutes.

Where something cannot be had, the tests that want it are skipped, and say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WANTED = (
    ("build_kubernetes.py", "metallb"),
    ("cluster_api_definitions.py",),
    ("metallb_definitions.py",),
    ("install_browser.py",),
)
LENT = ("BUTLER_TEST_KUBECONFIG", "KUBEBUILDER_ASSETS")
"""Variables that name a Kubernetes that is there already."""


def main() -> None:
    kubernetes = () if any(os.environ.get(name) for name in LENT) else (("build_kubernetes.py",),)
    for script, *arguments in (*kubernetes, *WANTED):
        subprocess.run([sys.executable, HERE / script, *arguments], check=False)


if __name__ == "__main__":
    main()
