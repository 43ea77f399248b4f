"""A Chromium for the tests of the console: found, or on Debian as root installed; else it is said what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium")


def find() -> str | None:
    """The browser's program; BUTLER_TEST_BROWSER names another one."""
    return os.environ.get("BUTLER_TEST_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def install() -> str | None:
    """Find a browser, or install Debian's; None where neither is possible."""
    if found := find():
        return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing Chromium, for the tests of the console (apt-get install chromium) ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (INSTALL, ("apt-get", "update", "-qq"), INSTALL):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if command == INSTALL and done.returncode == 0:
                return find()
    return None


def main() -> None:
    if install() is None:
        print("THE CONSOLE IS NOT TESTED IN A BROWSER: there is no Chromium here; install it, and run the tests again.")


if __name__ == "__main__":
    main()
