"""The record of a grant: what is written down of a status, and what is not."""

from __future__ import annotations

import msgspec
import pytest

from butler.ipam.granted import GrantRecord, due_record
from unit.controllers.networkpool.values import allocation


def test_what_is_allocated_is_recorded_with_the_uid_of_its_object() -> None:
    web = allocation("web", holds="10.0.0.4-10.0.0.7")
    assert due_record(web) == GrantRecord("10.0.0.4-10.0.0.7", web.metadata.uid)


def test_a_request_that_waits_has_nothing_to_record() -> None:
    assert due_record(allocation("web", 4)) is None


@pytest.mark.parametrize(
    ("start", "end"),
    [("10.0.0.7", "10.0.0.4"), ("banana", "10.0.0.7"), ("10.0.0.4", "fd00::1"), ("10.0.0.4", None), (None, None)],
)
def test_a_status_that_makes_no_sense_does_not_replace_what_is_on_record(start: str | None, end: str | None) -> None:
    web = allocation("web", holds="10.0.0.4-10.0.0.7", had="10.0.0.4-10.0.0.7 uid-web")
    edited = msgspec.structs.replace(web.status, start_address=start, end_address=end)
    assert due_record(msgspec.structs.replace(web, status=edited)) is None
