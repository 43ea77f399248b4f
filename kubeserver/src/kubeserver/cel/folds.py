"""The macros that go over lists and maps: `all`, `exists`, `map`, `filter` and their kin.

Each gets what to go over, the slots of its variables in the frame, and the compiled steps. An error in one round
does not count if another round decides: `[0, 1].exists(x, 1 / x == 1)` is true.

Loops pay for their rounds before they run them (`costs.py`), some at a time: a loop that ends early has not
paid for the rest, and one that would take for ever stops soon. Nothing may be done for all items before the first
round, or a loop in a loop could do that unpaid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from kubeserver.cel.costs import Frame, pay
from kubeserver.cel.functions import ordered
from kubeserver.cel.values import NO_OVERLOAD, NONE, CelError, CostError, Optional

Step = Callable[[Frame], Any]
Items = Callable[[Frame], Iterator[Any]]

_FIRST_ROUNDS: Final = 8  # that are paid at once; after them twice as many, and so on
_MOST_ROUNDS: Final = 256


def items_of(target: Callable[[Frame], Any], read: Callable[[Any], Any] | None, cost: int, *, two: bool) -> Items:
    """What a macro goes over: items or keys, or pairs of both, each paid for before it is given."""

    def items(frame: Frame) -> Iterator[Any]:
        found = target(frame)
        values: Iterable[Any]
        each: Iterator[Any]
        if isinstance(found, list):
            values = found if read is None else map(read, found)
            each = iter(enumerate(values) if two else values)
        elif not isinstance(found, dict):
            raise CelError(NO_OVERLOAD)
        elif not two:
            each = iter(found)
        else:
            values = found.values() if read is None else map(read, found.values())
            each = zip(found, values, strict=True)
        left, rounds = len(found), _FIRST_ROUNDS
        while left > rounds:
            pay(frame, cost * rounds)
            yield from islice(each, rounds)
            left -= rounds
            rounds = min(2 * rounds, _MOST_ROUNDS)
        pay(frame, cost * left)
        yield from each

    return items


def _rounds(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Iterator[Any]]:
    """Run the first step for every item; yields what it gave, or the error it raised."""
    if len(slots) == 1:
        slot, step = slots[0], steps[0]

        def one(frame: Frame) -> Iterator[Any]:
            _reserve(frame, slot)
            for key in items(frame):
                frame[slot] = key
                try:
                    yield step(frame)
                except CostError:
                    raise
                except CelError as problem:
                    yield problem

        return one
    first, second, step = slots[0], slots[1], steps[0]

    def two(frame: Frame) -> Iterator[Any]:
        _reserve(frame, second)
        for key, value in items(frame):
            frame[first], frame[second] = key, value
            try:
                yield step(frame)
            except CostError:
                raise
            except CelError as problem:
                yield problem

    return two


def _reserve(frame: Frame, slot: int) -> None:
    while len(frame) <= slot:
        frame.append(None)


def _all(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    rounds = _rounds(items, slots, steps)

    def fold(frame: Frame) -> Any:
        problem: CelError | None = None
        for found in rounds(frame):
            if found is False:
                return False
            if found is not True:
                problem = found if isinstance(found, CelError) else CelError(NO_OVERLOAD)
        if problem is not None:
            raise problem
        return True

    return fold


def _exists(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    rounds = _rounds(items, slots, steps)

    def fold(frame: Frame) -> Any:
        problem: CelError | None = None
        for found in rounds(frame):
            if found is True:
                return True
            if found is not False:
                problem = found if isinstance(found, CelError) else CelError(NO_OVERLOAD)
        if problem is not None:
            raise problem
        return False

    return fold


def _checked(found: Any) -> bool:
    if isinstance(found, CelError):
        raise found
    if found is not True and found is not False:
        raise CelError(NO_OVERLOAD)
    return found


def _exists_one(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    rounds = _rounds(items, slots, steps)
    return lambda frame: sum(_checked(found) for found in rounds(frame)) == 1


def _filter(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    slot = slots[0]
    rounds = _rounds(items, slots, steps)
    return lambda frame: [frame[slot] for found in rounds(frame) if _checked(found)]


def _transform(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Iterator[Any]]:
    """Pairs of key and result for the items that pass the optional condition."""
    rounds = _rounds(items, slots, steps)
    slot = slots[0]

    def pairs(frame: Frame) -> Iterator[Any]:
        for found in rounds(frame):
            if len(steps) == 2:
                if _checked(found):
                    yield frame[slot], steps[1](frame)
            elif isinstance(found, CelError):
                raise found
            else:
                yield frame[slot], found

    return pairs


def _to_list(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    pairs = _transform(items, slots, steps)
    return lambda frame: [value for _, value in pairs(frame)]


def _to_map(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    pairs = _transform(items, slots, steps)
    return lambda frame: dict(pairs(frame))


def _to_entries(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    pairs = _transform(items, slots, steps)

    def fold(frame: Frame) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for _, entry in pairs(frame):
            for key, value in entry.items():
                if key in built:
                    raise CelError(f"insert failed: key {key} already exists")
                built[key] = value
        return built

    return fold


def _sort_by(items: Items, slots: list[int], steps: list[Step]) -> Callable[[Frame], Any]:
    pairs = _transform(items, slots, steps)

    def fold(frame: Frame) -> list[Any]:
        found = list(pairs(frame))
        return ordered([value for value, _ in found], [key for _, key in found]) if found else []

    return fold


def optional_fold(
    target: Callable[[Frame], Any], slot: int, step: Callable[[Frame], Any], *, flat: bool
) -> Callable[[Frame], Any]:
    def fold(frame: Frame) -> Optional:
        found = target(frame)
        if not isinstance(found, Optional):
            raise CelError(NO_OVERLOAD)
        if not found.present:
            return NONE
        _reserve(frame, slot)
        frame[slot] = found.value
        made = step(frame)
        return made if flat else Optional(made, present=True)

    return fold


FOLDS: Final[dict[str, Callable[[Any, list[int], list[Any]], Callable[[Frame], Any]]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _to_list,
    "transformList": _to_list,
    "transformMap": _to_map,
    "transformMapEntry": _to_entries,
    "sortBy": _sort_by,
}
