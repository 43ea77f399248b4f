"""Matching regular expressions in time proportional to the text, whatever the pattern.

Python's `re` backtracks: `(a+)+b` on thirty letters takes minutes, holds the interpreter all the while, and any user
who may create a CustomResourceDefinition can bring such a pattern in. So `re` only parses here. The tree becomes a
nondeterministic automaton (Thompson's), and a text is matched by following all its states at once; each set of states
that comes up is remembered with where a character leads from it, so that a usual pattern costs one dictionary lookup
per character.

What is not remembered yet costs as many steps as the set has states. An account per pattern bounds those: a pattern
that has used up its account is refused with `TooCostly` until time has filled it again, and other patterns are not
affected.

Nothing here captures groups. It must never call `re` on a text that a client sent.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from re import _constants as op  # type: ignore[attr-defined]  # the tree of `re` has been the same for twenty years
from re import _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, Final

from kubeserver import patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_STATES: Final = 50_000  # of one automaton; Go's own limit is of this order
_MOST_REMEMBERED: Final = 2_500_000  # words of memory, of one pattern
_WORDS_OF_A_STATE: Final = 20
_WORDS_OF_A_SET: Final = 30
_WORDS_OF_A_TRANSITION: Final = 12
_ACCOUNT: Final = 1_000_000  # steps a pattern may take at once: about half a second
_PER_SECOND: Final = 200_000  # and how fast the account fills again
_STEPS_OF_A_STATE: Final = 2  # to make it: about 2 microseconds
_EDGE: Final = ""  # the character before the first and after the last
_WORD: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class TooLarge(ValueError):
    """The automaton of a pattern would have too many states."""


class TooCostly(ValueError):
    """A pattern has taken more steps than it may in so little time."""


class _Node:
    """One state: it takes a character, or holds a condition, or parts ways; the last one has nothing to do."""

    __slots__ = ("condition", "test", "ways")

    def __init__(self, ways: list[_Node], test: Callable[[str], bool] | None = None, condition: Any = None) -> None:
        self.ways = ways  # in order of preference
        self.test = test
        self.condition: Callable[[str, str], bool] | None = condition


class _Remembered(dict[str, "_Remembered"]):
    """A set of states, with where each character seen so far leads from it."""

    __slots__ = ("before", "ends", "found", "nodes")

    def __init__(self, nodes: tuple[_Node, ...], before: str, *, found: bool = False) -> None:
        super().__init__()
        self.nodes = nodes
        self.before = before  # the character that led here, as far as conditions can tell characters apart
        self.found = found
        self.ends: bool | None = None  # whether the text may end here; None: not asked yet


class Automaton:
    """One pattern, ready to match."""

    def __init__(self, pattern: str) -> None:
        tree = _parser.parse(pattern)
        self._last = _Node([])
        builder = _Builder()
        self._first = builder.sequence(tree, tree.state.flags, self._last)
        self._words = builder.count * _WORDS_OF_A_STATE
        self._account = float(_ACCOUNT)
        self._filled = time.monotonic()
        self._found = _Remembered((), _EDGE, found=True)
        self._forget()

    def _forget(self) -> None:
        self._start = _Remembered((self._first,), _EDGE)
        self._sets: dict[tuple[tuple[_Node, ...], str], _Remembered] = {}
        self._remembered = 0

    @property
    def size(self) -> int:
        """About how much memory it takes, in words of eight bytes."""
        return self._words + self._remembered

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        at = self._start
        for character in text:
            following = at.get(character)
            if following is None:
                following = self._step(at, character)
            if following.found:
                return True
            at = following
        if at.ends is None:
            at.ends = self._last in self._reached(at.nodes, at.before, _EDGE)
        return at.ends

    def _step(self, at: _Remembered, character: str) -> _Remembered:
        reached = self._reached(at.nodes, at.before, character)
        if self._last in reached:
            following = self._found
        else:
            nodes = {node.ways[0]: None for node in reached if node.test is not None and node.test(character)}
            key = ((*nodes, self._first), _seen_as(character))  # a match may begin at every character
            known = self._sets.get(key)
            if known is None:
                known = self._sets[key] = _Remembered(*key)
                self._remembered += _WORDS_OF_A_SET + len(known.nodes)
            following = known
        self._remembered += _WORDS_OF_A_TRANSITION
        if self._remembered > _MOST_REMEMBERED:
            self._forget()
        else:
            at[character] = following
        return following

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the leftmost match lies, the one that Go and Python prefer among those."""
        found: tuple[int, int] | None = None
        threads: dict[_Node, int] = {}
        for place in range(start, len(text) + 1):
            if found is None:
                threads.setdefault(self._first, place)
            elif not threads:
                break
            before = text[place - 1] if place else _EDGE
            character = text[place] if place < len(text) else _EDGE
            following: dict[_Node, int] = {}
            for node, began in self._reached_from(threads, before, character):
                if node is self._last:
                    found = began, place
                    break  # whatever comes after is less preferred
                if character and node.test is not None and node.test(character):
                    following.setdefault(node.ways[0], began)
            threads = following
        return found

    def find_all(self, text: str) -> Iterator[str]:
        """All matches that do not overlap, from left to right; an empty one right behind another does not count."""
        place, ended = 0, -1
        while place <= len(text):
            found = self.find(text, place)
            if found is None:
                return
            first, end = found
            if first == end == ended:
                place = end + 1
                continue
            yield text[first:end]
            ended = end
            place = end if end > first else end + 1

    def _reached(self, nodes: tuple[_Node, ...], before: str, character: str) -> dict[_Node, int]:
        return dict(self._reached_from(dict.fromkeys(nodes, 0), before, character))

    def _reached_from(self, threads: dict[_Node, int], before: str, character: str) -> list[tuple[_Node, int]]:
        """The states that take a character (or are the last), in order of preference, with where each began."""
        seen: set[_Node] = set()
        reached: list[tuple[_Node, int]] = []
        for origin, began in threads.items():
            stack = [origin]
            while stack:
                node = stack.pop()
                if node in seen:
                    continue
                seen.add(node)
                if node.test is not None or node is self._last:
                    reached.append((node, began))
                elif node.condition is None or node.condition(before, character):
                    stack.extend(reversed(node.ways))
        self._pay(len(seen))
        return reached

    def _pay(self, steps: int) -> None:
        patience.spend(steps)
        self._account -= steps
        if self._account < 0:
            now = time.monotonic()
            self._account = min(_ACCOUNT, self._account + (now - self._filled) * _PER_SECOND)
            self._filled = now
            if self._account < 0:
                raise TooCostly("the pattern takes too many steps on this text")


def _seen_as(character: str) -> str:
    """A stand-in for all characters that conditions cannot tell apart."""
    return character if character == "\n" else "a" if character in _WORD else " "


class _Builder:
    """From the tree of a pattern to states, back to front: each part is told where to go on.

    A short pattern can spell out a billion copies of a part, also of an empty one, so copies count like states. They
    share their tests, which are most of the memory.
    """

    def __init__(self) -> None:
        self.count = 0
        self._tests: dict[tuple[Any, int, int], Callable[[str], bool]] = {}

    def sequence(self, items: Any, flags: int, onward: _Node) -> _Node:
        for operator, argument in reversed(list(items)):
            onward = self._one(operator, argument, flags, onward)
        return onward

    def _new(self, ways: list[_Node], test: Any = None, condition: Any = None) -> _Node:
        self._take_one()
        return _Node(ways, test, condition)

    def _take_one(self) -> None:
        self.count += 1
        if self.count > MOST_STATES:
            raise TooLarge
        patience.spend(_STEPS_OF_A_STATE)

    def _one(self, operator: Any, argument: Any, flags: int, onward: _Node) -> _Node:
        if operator is op.SUBPATTERN:
            _, added, dropped, inner = argument
            return self.sequence(inner, (flags | added) & ~dropped, onward)
        if operator is op.BRANCH:
            return self._new([self.sequence(item, flags, onward) for item in argument[1]])
        if operator in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeat(argument, flags, onward, lazy=operator is op.MIN_REPEAT)
        if operator is op.AT:
            return self._new([onward], condition=_condition(argument, flags))
        return self._new([onward], test=self._test(operator, argument, flags))

    def _test(self, operator: Any, argument: Any, flags: int) -> Callable[[str], bool]:
        key = operator, argument if isinstance(argument, int) else id(argument), flags
        if key not in self._tests:
            self._tests[key] = _test(operator, argument, flags)
        return self._tests[key]

    def _repeat(self, argument: Any, flags: int, onward: _Node, *, lazy: bool) -> _Node:
        low, high, inner = argument
        if high is op.MAXREPEAT:
            loop = self._new([])
            again = self.sequence(inner, flags, loop)
            loop.ways = [onward, again] if lazy else [again, onward]
            at = loop
        else:
            at = onward
            for _ in range(high - low):
                self._take_one()
                again = self.sequence(inner, flags, at)
                at = self._new([onward, again] if lazy else [again, onward])
        for _ in range(low):
            self._take_one()
            at = self.sequence(inner, flags, at)
        return at


def _test(operator: Any, argument: Any, flags: int) -> Callable[[str], bool]:
    """Whether a part that takes one character takes this one."""
    if operator is op.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda character: character != "\n")
    if operator is op.LITERAL:
        ranges, negated = [(argument, argument)], False
    elif operator is op.NOT_LITERAL:
        ranges, negated = [(argument, argument)], True
    else:
        assert operator is op.IN, operator
        negated = argument[0][0] is op.NEGATE
        ranges = [low if kind is op.RANGE else (low, low) for kind, low in argument if kind is not op.NEGATE]
    within = _within(ranges)
    if flags & re.IGNORECASE:
        return lambda character: any(within(ord(case)) for case in _cases(character)) is not negated
    return lambda character: within(ord(character)) is not negated


def _within(ranges: list[tuple[int, int]]) -> Callable[[int], bool]:
    if len(ranges) == 1:
        low, high = ranges[0]
        return lambda code: low <= code <= high
    bounds: list[int] = []  # where a stretch begins and where it has ended, in turn
    for low, high in sorted(ranges):
        if bounds and low <= bounds[-1]:
            bounds[-1] = max(bounds[-1], high + 1)
        else:
            bounds += [low, high + 1]
    return lambda code: bisect_right(bounds, code) % 2 == 1


def _cases(character: str) -> set[str]:
    lower, upper = character.lower(), character.upper()
    return {text for text in (character, lower, upper, lower.upper(), upper.lower()) if len(text) == 1}


def _condition(kind: Any, flags: int) -> Callable[[str, str], bool]:
    """Whether a place between two characters is the right one."""
    if kind is op.AT_BEGINNING and flags & re.MULTILINE:
        return lambda before, _: before in ("", "\n")
    if kind in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return lambda before, _: not before
    if kind is op.AT_END:
        return lambda _, after: after in ("", "\n")
    if kind is op.AT_END_STRING:
        return lambda _, after: not after
    wanted = kind is op.AT_BOUNDARY
    return lambda before, after: ((before in _WORD) is not (after in _WORD)) is wanted
