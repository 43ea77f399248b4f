"""Tests that run side by side: a tenant cluster is mostly waited for, and dozens can be waited for at once.

    @alongside
    def test_a_fact(estate: Estate) -> None: ...

All such tests that were selected are begun when the first of them is due, each in a thread of its own, as many at a
time as two cores bear; pytest then collects them one by one, and each passes or fails under its own name. They share
one management cluster and nothing else: every test has its own namespaces, pools and providers, and its clusters are
deleted when it ends.
"""

from __future__ import annotations

import inspect
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenants.estate import Estate

AT_ONCE = 16
STORY, EARLY = "story", "early"
ELSEWHERE = ("control_plane",)
"""Parameters of the fixtures behind the estate."""


def alongside(story: Callable[..., None]) -> Callable[..., None]:
    """Run a test beside the others. Its first argument is the estate, the others are parameters."""
    return _collecting(story, early=False)


def alongside_early(story: Callable[..., None]) -> Callable[..., None]:
    """The same for a test that waits for a time limit: begun before the others, it costs nothing."""
    return _collecting(story, early=True)


def _collecting(story: Callable[..., None], *, early: bool) -> Callable[..., None]:

    def collect(alongside: Alongside, **parameters: Any) -> None:
        alongside.result(story, parameters)

    # Not functools.wraps: pytest would look through it and hand out the story's own arguments.
    collect.__name__, collect.__doc__, collect.__module__ = story.__name__, story.__doc__, story.__module__
    _, *others = inspect.signature(story).parameters.values()
    first = inspect.Parameter("alongside", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    setattr(collect, "__signature__", inspect.Signature([first, *others]))  # noqa: B010 (mypy knows no such name)
    setattr(collect, STORY, story)
    setattr(collect, EARLY, early)
    return collect


class Alongside:
    """The tests, running."""

    def __init__(self, items: Iterable[pytest.Item], estate: Estate) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="story")
        self._running: dict[str, Future[None]] = {}
        stories = [item for item in items if isinstance(item, pytest.Function) and hasattr(item.function, STORY)]
        for item in sorted(stories, key=lambda item: not getattr(item.function, EARLY)):
            story = getattr(item.function, STORY)
            given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
            parameters = {name: value for name, value in given.items() if name not in ELSEWHERE}
            if (key := _key(story, parameters)) not in self._running:
                self._running[key] = self._pool.submit(_tell, story, estate.part(), parameters)

    def result(self, story: Callable[..., None], parameters: dict[str, Any]) -> None:
        self._running[_key(story, parameters)].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def _tell(story: Callable[..., None], part: Estate, parameters: dict[str, Any]) -> None:
    story(part, **parameters)
    part.delete_clusters()  # of a test that failed, everything is left to look at


def _key(story: Callable[..., None], parameters: dict[str, Any]) -> str:
    return f"{story.__module__} {story.__name__} {sorted(parameters.items())}"
