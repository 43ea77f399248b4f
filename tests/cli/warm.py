"""Commands that start at once: sent to a process that has imported everything and forks (`warm_server.py`).

A command runs the same `main()` with the same arguments, environment and descriptors as the executable would, in a
process of its own. What tests say about starting, terminals and signals uses the executables themselves.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WARM = ("butleradm", "butlerctl")
READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Variables that an interpreter reads when it starts: what was forked would not notice them."""


def can_run(program: str, environment: Mapping[str, str]) -> bool:
    """Whether a command would do the same here; `environment` is what it has beyond that of the tests."""
    return program in WARM and not any(name.startswith(READ_AT_START) for name in environment)


def run(
    program: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdin: str,
    cwd: Path | None,
    patience: float,
) -> tuple[int, str, str]:
    """The exit code and what was printed to standard output and error; raises TimeoutExpired as subprocess.run does."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        code = _code([program, *arguments], environment, cwd, [given.fileno(), out.fileno(), err.fileno()], patience)
        for printed in (out, err):
            printed.seek(0)
        return code, out.read().decode(), err.read().decode()


def _code(
    command: list[str], environment: Mapping[str, str], cwd: Path | None, standard: list[int], patience: float
) -> int:
    program, *arguments = command
    message = {
        "program": program,
        "arguments": arguments,
        "environment": dict(environment),
        "cwd": str(cwd or Path.cwd()),
    }
    reader, writer = os.pipe()
    try:
        socket.send_fds(_server(), [json.dumps(message).encode()], [*standard, writer])
        os.close(writer)
        told = b""
        while told.count(b"\n") < 2:
            if not select.select([reader], [], [], patience)[0]:
                os.kill(int(told), signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, patience)
            read = os.read(reader, 64)
            assert read, "the process that forks commands has ended"
            told += read
        return int(told.split()[1])
    finally:
        os.close(reader)


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = Path(__file__).with_name("warm_server.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    theirs.close()

    def stop() -> None:
        ours.close()
        process.wait(10)

    atexit.register(stop)
    return ours
