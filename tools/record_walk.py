"""Record which modules of ours a program passes: for the walks in docs/architecture.md.

    python tools/record_walk.py butleradm pool map vlan40-pool
    python tools/record_walk.py --signals butleradm controller run

A module counts when one of its functions runs; imports and class bodies do not count. Without `--signals` the whole run
is recorded and printed at the end. With it, SIGUSR1 begins a record and SIGUSR2 prints it, as often as you like, so
that a walk can be cut out of the life of a process. Modules come in the order of their first call, with the function
that was called and how many calls of it began or resumed. `Steps.__init__` of the load balancers counts their runs.

Only the main thread is recorded: that is where the event loop runs. A recorded process is a few times as slow as usual.
"""

from __future__ import annotations

import atexit
import inspect
import signal
import sys
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

ROOTS = ("/src/butler/", "/src/kubeserver/")


class Record:
    """The modules that were passed, and the functions in them."""

    def __init__(self) -> None:
        self._modules: dict[CodeType, str] = {}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._first: dict[str, str] = {}

    def begin(self, *_: Any) -> None:
        self._calls.clear()
        self._first.clear()
        sys.setprofile(self._event)

    def end(self, *_: Any) -> None:
        sys.setprofile(None)
        print(f"{len(self._first)} modules", file=sys.stderr)
        for module, function in self._first.items():
            print(f"{module}  {function} {self._calls[module, function]}", file=sys.stderr)
        for (module, function), count in sorted(self._calls.items()):
            print(f"    {module}:{function} {count}", file=sys.stderr)
        sys.stderr.flush()

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        module = self._modules.get(code)
        if module is None:
            module = self._modules[code] = _module_of(code)
        if module and not _is_importing(frame):
            self._first.setdefault(module, code.co_qualname)
            self._calls[module, code.co_qualname] += 1


def _module_of(code: CodeType) -> str:
    """The module of a function of ours; empty for all else."""
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return ""  # the body of a module or a class
    for root in ROOTS:
        _, found, path = code.co_filename.partition(root)
        if found:
            return f"{root.split('/')[-2]}/{path}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return ""


def _is_importing(frame: FrameType) -> bool:
    above = frame.f_back
    while above is not None:
        if above.f_code.co_filename.startswith("<frozen importlib"):
            return True
        above = above.f_back
    return False


def main() -> None:
    words = sys.argv[1:]
    by_signals = words[:1] == ["--signals"]
    program, *arguments = words[by_signals:]
    sys.argv = [program, *arguments]
    record = Record()
    run = import_module(f"butler.cli.{program}").main
    if by_signals:
        signal.signal(signal.SIGUSR1, record.begin)
        signal.signal(signal.SIGUSR2, record.end)
    else:
        atexit.register(record.end)
        record.begin()
    run()


if __name__ == "__main__":
    main()
