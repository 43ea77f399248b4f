"""The allocator as a bitmap scan: too slow to use, too simple to be wrong. It shares no code with what it judges.

One letter per address, from the first to the last address of any window: `.` free, `x` taken, `r` reserved, and a
space for what lies between windows. Every question is answered by walking over all letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Span = tuple[int, int]


@dataclass(frozen=True)
class Asking:
    """A request, in the oracle's own words."""

    uid: str
    created: float
    count: int
    pin: Span | None = None


class Outcome(NamedTuple):
    granted: dict[str, Span]
    refused: dict[str, str]
    left_over: list[str]


class Bitmap:
    def __init__(self, windows: list[Span], reserved: list[Span] = [], taken: list[Span] = []) -> None:  # noqa: B006
        self.windows = windows
        self.base = min((first for first, _ in windows), default=0)
        top = max((last for _, last in windows), default=-1)
        self.letters = [" "] * (top - self.base + 1)
        self.window_of = [-1] * len(self.letters)
        for number, (first, last) in enumerate(windows):
            for address in range(first, last + 1):
                self.letters[address - self.base] = "."
                self.window_of[address - self.base] = number
        for letter, spans in (("r", reserved), ("x", taken)):
            for first, last in spans:
                for address in range(first, last + 1):
                    if self.letter(address) == ".":
                        self.letters[address - self.base] = letter

    def copy(self) -> Bitmap:
        other = Bitmap(self.windows)
        other.letters = list(self.letters)
        return other

    def letter(self, address: int) -> str:
        index = address - self.base
        return self.letters[index] if 0 <= index < len(self.letters) else " "

    def runs(self) -> list[Span]:
        """Maximal runs of free addresses within one window, in order of address."""
        runs: list[Span] = []
        start = None
        for index, letter in enumerate(self.letters):
            if start is not None and (letter != "." or self.window_of[index] != self.window_of[index - 1]):
                runs.append((start + self.base, index - 1 + self.base))
                start = None
            if start is None and letter == ".":
                start = index
        if start is not None:
            runs.append((start + self.base, len(self.letters) - 1 + self.base))
        return runs

    def best_fit(self, count: int) -> Span | None:
        best: Span | None = None
        for first, last in self.runs():
            length = last - first + 1
            if length >= count and (best is None or length < best[1] - best[0] + 1):
                best = (first, last)
        return None if best is None else (best[0], best[0] + count - 1)

    def first_that_is_not(self, letter: str, span: Span) -> int | None:
        for address in range(span[0], span[1] + 1):
            if self.letter(address) != letter:
                return address
        return None

    def mark(self, letter: str, span: Span) -> None:
        for address in range(span[0], span[1] + 1):
            self.letters[address - self.base] = letter

    @property
    def total(self) -> int:
        return sum(letter in ".x" for letter in self.letters)

    @property
    def free(self) -> int:
        return sum(letter == "." for letter in self.letters)

    @property
    def largest(self) -> int:
        return max((last - first + 1 for first, last in self.runs()), default=0)

    @property
    def fragmentation(self) -> int:
        if not self.free:
            return 0
        empty = self.copy()
        empty.letters = ["." if letter == "x" else letter for letter in self.letters]
        return 100 - int(self.largest * 100 / min(self.free, empty.largest))

    def decide(self, batch: list[Asking], most: int) -> Outcome:
        """Serve a batch, changing this bitmap."""
        outcome = Outcome({}, {}, [])
        pinned = sorted((asking for asking in batch if asking.pin is not None), key=lambda a: (a.created, a.uid))
        other = sorted((asking for asking in batch if asking.pin is None), key=lambda a: (a.created, a.uid))
        for asking in pinned + other:
            if len(outcome.granted) == most:
                outcome.left_over.append(asking.uid)
                continue
            span, reason = self._answer(asking)
            if span is None:
                outcome.refused[asking.uid] = reason
            else:
                self.mark("x", span)
                outcome.granted[asking.uid] = span
        return outcome

    def _answer(self, asking: Asking) -> tuple[Span | None, str]:
        if asking.pin is not None:
            first, last = asking.pin
            if last < first or last - first >= 65536:
                return None, "InvalidRequest"
            if not any(start <= first and last <= end for start, end in self.windows):
                return None, "PinnedRangeOutOfPool"
            if self.first_that_is_not(".", asking.pin) is not None:
                return None, "PinnedRangeConflict"
            return asking.pin, ""
        if asking.count < 1 or asking.count > 65536:
            return None, "InvalidRequest"
        span = self.best_fit(asking.count)
        return span, "PoolFragmented" if self.free >= asking.count else "PoolExhausted"
