"""Free space against the bitmap oracle: they must agree on every step of any history.

Hypothesis allocates, pins, releases, gives back nonsense, edits what is reserved and rebuilds from the records. The
windows lie close together, some touching, so that edges are met all the time.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from butler.ipam.addresses import Range
from butler.ipam.capacity import capacity_of
from butler.ipam.free_space import FreeSpace, NotFree, NotTaken
from unit.ipam.bitmap_oracle import Bitmap, Span

BASE = 10 << 24
END = BASE + 90
ADDRESSES = st.integers(BASE - 2, END + 2)
LENGTHS = st.one_of(st.integers(1, 9), st.integers(1, 64))


@st.composite
def some_windows(draw: st.DrawFn) -> list[Span]:
    """One to four windows, disjoint, with gaps that are often empty."""
    windows: list[Span] = []
    first = BASE + draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 4))):
        last = first + draw(st.integers(0, 40))
        if last > END:
            break
        windows.append((first, last))
        first = last + 1 + draw(st.sampled_from([0, 0, 1, 2, 7]))
    return windows


RESERVED = st.lists(st.tuples(ADDRESSES, st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=3)


class FreeSpaceAgainstBitmap(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.held: list[Span] = []
        self.reserved: list[Span] = []

    @initialize(windows=some_windows())
    def begin(self, windows: list[Span]) -> None:
        self.windows = windows
        self.space = FreeSpace(Range(*window) for window in windows)
        self.bitmap = Bitmap(windows)

    @rule(count=LENGTHS)
    def allocate(self, count: int) -> None:
        place = self.space.best_fit(count)
        assert place == self.bitmap.best_fit(count)
        if place is not None:
            self.space.take(place)
            self.bitmap.mark("x", place)
            self.held.append((place.first, place.last))

    @rule(first=ADDRESSES, length=LENGTHS)
    def pin(self, first: int, length: int) -> None:
        wanted = Range(first, first + length - 1)
        conflict = self.bitmap.first_that_is_not(".", wanted)
        assert self.space.first_taken(wanted) == conflict
        assert self.space.is_free(wanted) is (conflict is None)
        if conflict is None:
            self.space.take(wanted)
            self.bitmap.mark("x", wanted)
            self.held.append(wanted)
        else:
            with pytest.raises(NotFree) as caught:
                self.space.take(wanted)
            assert caught.value.address == conflict

    @rule(choice=st.integers(0, 1000))
    def release(self, choice: int) -> None:
        if self.held:
            self._give(self.held.pop(choice % len(self.held)))

    @rule(first=ADDRESSES, length=LENGTHS)
    def give_back_anything(self, first: int, length: int) -> None:
        """A part of one grant, several grants at once, or what is not allocated; the records stay and are cut later."""
        self._give((first, first + length - 1))
        freed = {address for address in range(first, first + length) if self.bitmap.letter(address) == "."}
        kept = [[a for a in range(start, end + 1) if a not in freed] for start, end in self.held]
        self.held = [(run[0], run[-1]) for run in kept if run and run[-1] - run[0] == len(run) - 1]
        self.held += [(a, a) for run in kept if run and run[-1] - run[0] != len(run) - 1 for a in run]

    def _give(self, span: Span) -> None:
        wrong = self.bitmap.first_that_is_not("x", span)
        if wrong is None:
            self.space.give(Range(*span))
            self.bitmap.mark(".", span)
        else:
            with pytest.raises(NotTaken) as caught:
                self.space.give(Range(*span))
            assert caught.value.address == wrong

    @rule(reserved=RESERVED)
    def edit_what_is_reserved_and_rebuild(self, reserved: list[Span]) -> None:
        """The records stay, also where they lie in what is reserved now."""
        self.bitmap = Bitmap(self.windows, reserved=reserved, taken=self.held)
        usable = Bitmap(self.windows, reserved=reserved).runs()
        self.space = FreeSpace.without([Range(*piece) for piece in usable], [Range(*span) for span in self.held])

    @rule(taken=st.lists(st.tuples(ADDRESSES, LENGTHS), max_size=6))
    def build_from_absurd_records(self, taken: list[tuple[int, int]]) -> None:
        """Records that overlap and lie outside; a space of its own, so that the history goes on undisturbed."""
        spans = [(first, first + length - 1) for first, length in taken]
        bitmap = Bitmap(self.windows, taken=spans)
        space = FreeSpace.without([Range(*window) for window in self.windows], [Range(*span) for span in spans])
        assert list(space.extents()) == bitmap.runs()
        assert space.free == bitmap.free

    @invariant()
    def all_answers_agree(self) -> None:
        if not hasattr(self, "space"):
            return
        space, bitmap = self.space, self.bitmap
        runs = bitmap.runs()
        assert list(space.extents()) == runs
        assert (space.free, space.largest, space.holes) == (bitmap.free, bitmap.largest, len(runs))
        capacity = capacity_of(space, bitmap.total)
        assert capacity.available == bitmap.free
        assert capacity.allocated == sum(letter == "x" for letter in bitmap.letters)
        assert capacity.fragmentation_percent == bitmap.fragmentation
        assert space.largest_holes(3) == sorted(runs, key=lambda run: (run[0] - run[1], run[0]))[:3]

    @invariant()
    def the_indexes_tell_one_story(self) -> None:
        if not hasattr(self, "space"):
            return
        space = self.space
        assert space._firsts == {last: first for first, last in space._lasts.items()}
        assert space._sizes == sorted(space._by_size) == sorted(space._live)
        for size, heap in space._by_size.items():
            live = {start for start in heap if space._lasts.get(start) == start + size - 1}
            assert len(live) == space._live[size] > 0
            assert len(heap) <= 2 * len(live) + 16
            assert all(heap[(child - 1) // 2] <= heap[child] for child in range(1, len(heap)))
        assert [end for members in space._ends._lists for end in members] == sorted(space._firsts)
        assert space._ends._maxima == [members[-1] for members in space._ends._lists]


FreeSpaceAgainstBitmap.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_free_space_does_what_the_bitmap_says = FreeSpaceAgainstBitmap.TestCase


@pytest.mark.slow
def test_free_space_does_what_the_bitmap_says_for_long() -> None:
    run_state_machine_as_test(
        FreeSpaceAgainstBitmap,
        settings=settings(
            max_examples=600, stateful_step_count=80, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
