"""The list of pages that other tests go through is the router's."""

from __future__ import annotations

from console.changes import CHANGES, NOT_LIVE
from console.routes import PAGES, SHOWN, routes_of_the_router


def test_no_page_of_the_router_is_left_out() -> None:
    assert set(SHOWN) == routes_of_the_router()


def test_every_page_is_watched_for_changes_or_shows_nothing_that_changes() -> None:
    assert set(CHANGES) | set(NOT_LIVE) == set(PAGES)
