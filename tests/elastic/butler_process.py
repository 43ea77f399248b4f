"""Butler's controllers as a process that a test may freeze for a moment, or kill and start again."""

from __future__ import annotations

import os
import signal
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from controller_process import ControllerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator


class Butler(ControllerProcess):
    """Several tests may freeze it at once: it wakes when the last of them lets go."""

    _sleepers = 0
    _turn = threading.Lock()

    def __enter__(self) -> Butler:
        super().__enter__()
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Everything that users do in this block is found done at once when it wakes."""
        with self._turn:
            self._sleepers += 1
            os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with self._turn:
                self._sleepers -= 1
                if not self._sleepers:
                    os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """`kill -9`: no goodbye."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def again(self) -> None:
        """A new life after a kill; returns when it works."""
        self.__enter__()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)
