"""Run as a program in place of `butleradm`: the same, and at a signal it says where memory and time went.

    python bench/profiled_controller.py time|memory REPORT controller run ...

`time`: SIGUSR1 begins to sample where the processor is, SIGUSR2 adds the samples to `REPORT`. `memory`: SIGUSR2 adds to
it Python's own allocations by the line of Butler that led to them, and objects by type. What is resident beyond that
belongs to TLS and the event loop; but of each TLS connection's buffer of 256 KB, which is allocated, next to nothing is
resident. Traced, everything takes several times as long and twice the memory: two processes, one for either question,
and figures from `bench_elastic.py` only.
"""

from __future__ import annotations

import gc
import signal
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import butler.processes.controller  # noqa: F401 - the command imports it late, and with it everything
from butler.cli.butleradm import main as butleradm

if TYPE_CHECKING:
    from types import FrameType

FRAMES = 8
EVERY = 0.01
SHOWN = 40
NONE = ("none of Butler", 0)
END = "that is all\n\n"
_samples: Counter[tuple[str, int]] = Counter()
_inner: Counter[tuple[str, int]] = Counter()


def sample(_: int, frame: FrameType | None) -> None:
    """Where the processor is: the innermost line of all, and the innermost of Butler. In little time: it adds up."""
    if frame is not None:
        _inner[frame.f_code.co_filename, frame.f_lineno] += 1
    while frame is not None and "/butler/" not in frame.f_code.co_filename:
        frame = frame.f_back
    _samples[(frame.f_code.co_filename, frame.f_lineno) if frame else NONE] += 1


def _place(file: str, line: int) -> str:
    return f"{'/'.join(file.split('/')[-3:])}:{line}"


def report_time(file: Path) -> None:
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    with file.open("a") as out:
        _table(out, f"samples ({EVERY * 1000:.0f} ms) by the innermost line of Butler", _samples, str)
        _table(out, "samples by the innermost line", _inner, str)
        out.write(END)


def report_memory(file: Path) -> None:
    gc.collect()
    traced, _ = tracemalloc.get_traced_memory()
    own, resident = tracemalloc.get_tracemalloc_memory(), _resident()
    taken = tracemalloc.take_snapshot()
    tracemalloc.stop()
    with file.open("a") as out:
        print(f"resident {_mb(resident)}; traced {_mb(traced)}; tracing itself {_mb(own)}", file=out)
        print(f"resident without both: {_mb(resident - traced - own)}\n", file=out)
        led: Counter[tuple[str, int]] = Counter()
        inner: Counter[tuple[str, int]] = Counter()
        for statistic in taken.statistics("traceback"):
            frames = list(statistic.traceback)  # the innermost last
            ours = next((f for f in reversed(frames) if "/butler/" in f.filename), None)
            led[(ours.filename, ours.lineno) if ours else NONE] += statistic.size
            inner[frames[-1].filename, frames[-1].lineno] += statistic.size
        _table(out, "bytes by the innermost line of Butler", led, _mb)
        _table(out, "bytes by the innermost line", inner, _mb)
        _table(out, "objects by type", Counter((type(get_obj).__qualname__, 0) for get_obj in gc.get_objects()), str)
        out.write(END)


def begin() -> None:
    _samples.clear()
    _inner.clear()
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)


def _table(out: Any, title: str, counted: Counter[tuple[str, int]], text: Any) -> None:
    print(f"{title}: {text(counted.total())}", file=out)
    for (name, line), amount in counted.most_common(SHOWN):
        print(f"  {text(amount):>10}  {_place(name, line) if line else name}", file=out)
    print(file=out)


def _mb(amount: int) -> str:
    return f"{amount / 1024 / 1024:.2f} MB"


def _resident() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) * 1024


def main() -> None:
    about, file = sys.argv.pop(1), Path(sys.argv.pop(1))
    if about == "time":
        signal.signal(signal.SIGPROF, sample)
        signal.signal(signal.SIGUSR1, lambda *_: begin())
        signal.signal(signal.SIGUSR2, lambda *_: report_time(file))
    else:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGUSR2, lambda *_: report_memory(file))
        # After all modules are in, which would take a minute under its eyes, and are no tenant's fault.
        tracemalloc.start(FRAMES)
    try:
        butleradm()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


if __name__ == "__main__":
    main()
