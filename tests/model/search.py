"""An exhaustive search through every state that a small model can reach.

A model is a set of initial states and a function from a state to the steps that are possible in it. The search is
breadth first, so the first violation found is one of the shortest, and it is told as a story: the words of the steps
that lead to it. Nothing here samples and nothing has a seed: a search that ends without a violation has seen every
interleaving within the model's bounds, and says how many states that were. It never gives up silently: a search that
would outgrow its limit fails. Asked to, it also remembers every step, and in the end looks for a state from which no
way leads to where one should be able to come from everywhere: a rest that is no rest, or a circle without an exit.

Two states that differ only in who is who (controller A and B swapped) need not both be explored: `canonical` maps
them to one. States are kept as they were first reached, so stories stay about the same A and B from end to end.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

S = TypeVar("S", bound="Hashable")


class Step(Generic[S]):
    """What happens, in words, the state after it, and what this step alone breaks (if anything).

    `outside`: it comes from people or from faults, or has no effect; progress must not depend on it.
    """

    __slots__ = ("after", "broken", "outside", "words")

    def __init__(self, words: str, after: S, broken: str = "", *, outside: bool = False) -> None:
        self.words = words
        self.after = after
        self.broken = broken
        self.outside = outside


class Model(Protocol[S]):
    """States are hashable values. Everything is a pure function of the state."""

    def initial(self) -> S: ...

    def steps(self, state: S) -> Iterable[Step[S]]: ...

    def broken(self, state: S) -> str:
        """What is wrong with this state, in a sentence; empty when nothing is."""
        ...

    def unfinished(self, state: S) -> str:
        """What is wrong with coming to rest here (no step is left but from outside); empty when nothing is."""
        ...

    def canonical(self, state: S) -> Hashable: ...


class TooLarge(Exception):
    """The model has more states than the search was allowed to visit: its bounds need thought."""


@dataclass(frozen=True)
class Outcome:
    """What a search found."""

    states: int
    steps: int
    depth: int
    seconds: float
    violation: str
    story: tuple[str, ...]

    def told(self) -> str:
        """The shortest history that breaks a promise, one step a line."""
        if not self.violation:
            return f"no violation in {self.states} states"
        lines = [f"{number:3}. {words}" for number, words in enumerate(self.story, 1)]
        return "\n".join([*lines, f"  => {self.violation}"])

    def figures(self) -> str:
        return f"{self.states} states, {self.steps} steps, depth {self.depth}, {self.seconds:.1f} s"


def search(
    model: Model[S],
    *,
    most: int = 2_000_000,
    progress: bool = True,
    home: Callable[[S], bool] | None = None,
) -> Outcome:
    """Visit every reachable state, or stop at the first violation.

    `progress`: also ask about coming to rest. `home`: also ask whether from every state a way without help from
    outside leads to a state like this.
    """
    started = time.perf_counter()
    first = model.initial()
    states: list[S] = [first]
    came_from: list[tuple[int, str]] = [(-1, "")]
    seen = {model.canonical(first): 0}
    sources, targets = array("l"), array("l")
    taken = 0
    depth = 0
    level_ends = 1
    at = 0

    def outcome(violation: str, where: int, *more: str) -> Outcome:
        story = [*_story(came_from, where), *more]
        return Outcome(len(states), taken, depth, time.perf_counter() - started, violation, tuple(story))

    while at < len(states):
        if at == level_ends:
            depth += 1
            level_ends = len(states)
        state = states[at]
        at_rest = True
        for step in model.steps(state):
            at_rest = at_rest and step.outside
            taken += 1
            if step.broken:
                return outcome(step.broken, at, step.words)
            key = model.canonical(step.after)
            target = seen.get(key, len(states))
            if home is not None and not step.outside:
                sources.append(at)
                targets.append(target)
            if target < len(states):
                continue
            broken = model.broken(step.after)
            if broken:
                return outcome(broken, at, step.words)
            seen[key] = target
            states.append(step.after)
            came_from.append((at, step.words))
        if at_rest and progress:
            unfinished = model.unfinished(state)
            if unfinished:
                return outcome(unfinished, at)
        if len(states) > most:
            raise TooLarge(f"more than {most} states; the last one explored was reached by: {_story(came_from, at)}")
        at += 1
    if home is not None:
        lost = _astray(sources, targets, [home(state) for state in states])
        if lost is not None:
            return outcome("from here no way leads back to where all is well", lost)
    return outcome("", 0)


def _astray(sources: Sequence[int], targets: Sequence[int], safe: list[bool]) -> int | None:
    """The first state from which none that is safe can be reached."""
    before: list[list[int]] = [[] for _ in safe]
    for source, target in zip(sources, targets, strict=True):
        before[target].append(source)
    todo = [state for state, is_safe in enumerate(safe) if is_safe]
    while todo:
        for source in before[todo.pop()]:
            if not safe[source]:
                safe[source] = True
                todo.append(source)
    return next((state for state, is_safe in enumerate(safe) if not is_safe), None)


def _story(came_from: Sequence[tuple[int, str]], where: int) -> list[str]:
    words: list[str] = []
    while where > 0:
        where, step = came_from[where]
        words.append(step)
    return words[::-1]
