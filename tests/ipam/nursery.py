"""Run as a program: imports Butler's controllers once, then forks a process for every command line it is given.

Reads one JSON object a line and answers each with one JSON value a line; ends, with its children, when its standard
input does.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any

from butler.cli.butleradm import main as butleradm
from butler.tenant import clusters

# Lines to tenants lead through proxies, whose ports are not those of any control plane. That a kubeconfig is followed
# to its own tenant only is shown elsewhere (tests/tenants/flows/test_kubeconfigs.py).
clusters._check_endpoint = lambda *_: None  # type: ignore[assignment]

PRELOADED = (
    "butler.processes.controller",
    "butler.controllers.networkpool.setup",
    "butler.kube.operator",
    "butler.kube.config",
)
PR_SET_PDEATHSIG = 1
_ended: dict[int, int] = {}


def serve() -> None:
    for module in PRELOADED:
        __import__(module)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(command: dict[str, Any]) -> Any:
    if "start" in command:
        return _fork(command["start"], command["log"])
    if "ended" in command:
        return _has_ended(command["ended"])
    if "reap" in command:
        _has_ended(command["reap"], wait=True)
        return _ended.pop(command["reap"])
    return "pong"


def _has_ended(pid: int, *, wait: bool = False) -> bool:
    if pid not in _ended:
        found, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
        if found:
            _ended[pid] = status
    return pid in _ended


def _fork(arguments: list[str], log_file: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        log = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        butleradm(arguments, prog_name="butleradm")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
