"""Lists that are sorted for each request: the same order and cursor as lists that are kept sorted."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from butler.server.list_page import Sorts, sorted_page
from butler.server.problems import RequestRefused


class Tenant(NamedTuple):
    name: str
    nodes: int | None
    namespace: str = "team"


SORTS: Sorts[Tenant] = {"name": lambda tenant: tenant.name, "nodes": lambda tenant: tenant.nodes}
TENANTS = [Tenant("web", 3), Tenant("data", None), Tenant("payments", 3), Tenant("search", 1), Tenant("mail", None)]


def names(sort: str, limit: int = 2) -> list[str]:
    """All pages, one after the other."""
    found: list[str] = []
    cursor = None
    while True:
        page = sorted_page(TENANTS, sorts=SORTS, sort=sort, limit=limit, cursor=cursor)
        assert page.total == len(TENANTS)
        found += [tenant.name for tenant in page.items]
        cursor = page.next
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 5, 9])
def test_what_has_no_value_comes_last_in_either_direction(limit: int) -> None:
    assert names("nodes", limit) == ["search", "payments", "web", "data", "mail"]
    assert names("-nodes", limit) == ["web", "payments", "search", "data", "mail"]
    assert names("-name", limit) == ["web", "search", "payments", "mail", "data"]


def test_a_cursor_stays_good_when_the_item_it_names_is_gone() -> None:
    page = sorted_page(TENANTS, sorts=SORTS, sort="nodes", limit=2, cursor=None)
    rest = [tenant for tenant in TENANTS if tenant.name != "payments"]
    found = sorted_page(rest, sorts=SORTS, sort="nodes", limit=9, cursor=page.next)
    assert [tenant.name for tenant in found.items] == ["web", "data", "mail"]


def test_a_field_or_cursor_that_means_nothing_is_refused() -> None:
    page = sorted_page(TENANTS, sorts=SORTS, sort="name", limit=2, cursor=None)
    for sort, cursor in (("colour", None), ("name", "x"), ("nodes", page.next)):
        with pytest.raises(RequestRefused) as refused:
            sorted_page(TENANTS, sorts=SORTS, sort=sort, limit=2, cursor=cursor)
        assert refused.value.status == 422
