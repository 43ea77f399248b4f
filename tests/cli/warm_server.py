"""Run as a program: imports Butler's commands once, then forks a process for every command line it is sent.

Importing is most of what a command costs. A message is the command as JSON, with the descriptors for its standard
input, output and error and a pipe, which is told the process id and, at the end, the exit code.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from importlib import import_module
from typing import Any

PROGRAMS = {"butleradm": "butler.cli.butleradm", "butlerctl": "butler.cli.butlerctl"}
PRELOADED = (
    *("aiohttp", "yaml", "msgspec", "click.shell_completion", "ssl", "uvloop"),
    *("butler.api.kinds", "butler.kube.client", "butler.kube.config", "butler.cli.toolkit.session"),
)
LONGEST = 1 << 17


def serve(inherited: int) -> None:
    for module in (*PRELOADED, *_commands()):
        import_module(module)
    gc.freeze()
    with socket.socket(fileno=inherited) as line:
        while True:
            message, descriptors, _, _ = socket.recv_fds(line, LONGEST, 4)
            if not message:
                return
            if os.fork() == 0:
                line.close()
                os._exit(_supervise(json.loads(message), descriptors))
            for descriptor in descriptors:
                os.close(descriptor)
            _reap()


def _commands() -> list[str]:
    """The module of every group of commands."""
    return [part.module for program in PROGRAMS.values() for part in import_module(program).PARTS.values()]


def _supervise(command: dict[str, Any], descriptors: list[int]) -> int:
    """Fork the command itself, and tell its id and its end."""
    *standard, told = descriptors
    worker = os.fork()
    if worker == 0:
        os.close(told)
        os._exit(_run(command, standard))
    os.write(told, b"%d\n" % worker)
    _, status = os.waitpid(worker, 0)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    return 0


def _run(command: dict[str, Any], standard: list[int]) -> int:
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = [command["program"], *command["arguments"]]
    # As a new interpreter opens them.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    code: Any = 1
    try:
        code = import_module(PROGRAMS[command["program"]]).main()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 1
    return int(code or 0)


def _reap() -> None:
    """Take note of supervisors that are done."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    serve(int(sys.argv[1]))
