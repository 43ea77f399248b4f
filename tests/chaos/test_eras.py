"""Where the record of an era ends when its server was killed."""

from __future__ import annotations

from chaos.eras import surely_whole
from ipam.history import ALLOCATION, POOL, History, Revision


def revision(kind: str, version: int, seconds: float) -> Revision:
    return Revision(version, kind, "home", "one", f"{kind}-uid", None, {"metadata": {"name": "one"}}, seconds)


def versions(history: History) -> list[int]:
    return [revision.version for revision in history.revisions]


def test_a_record_ends_before_the_first_revision_that_came_late() -> None:
    history = History(
        [revision(ALLOCATION, 7, 1.0), revision(POOL, 9, 2.0), revision(POOL, 12, 2.1), revision(ALLOCATION, 11, 5.0)],
        5,
    )
    assert versions(surely_whole(history, 4.0)) == [7, 9]


def test_a_record_without_late_revisions_is_whole() -> None:
    history = History([revision(ALLOCATION, 7, 1.0), revision(POOL, 9, 2.0)], 5)
    assert versions(surely_whole(history, 4.0)) == [7, 9]


def test_what_the_first_list_showed_stays() -> None:
    history = History([revision(ALLOCATION, 4, 4.5), revision(POOL, 9, 4.6)], 5)
    assert versions(surely_whole(history, 4.0)) == [4]
