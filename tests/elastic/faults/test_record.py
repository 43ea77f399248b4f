"""The record itself: what is really wrong on two servers is found out, however the order of their writes is known."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from elastic import rules
from elastic.record import LOOKS_APART
from tenants.estate import API, HOME

if TYPE_CHECKING:
    from elastic.faults.drill import Drill


def test_a_release_under_a_service_is_found_out_from_both_sides(drill: Drill) -> None:
    web = drill.tenant()
    with drill.replica():
        drill.grow(web, "a")
    assert rules.check(drill.estate.record.chronicle([web.uid])) == []
    (growth,) = web.growths()
    path = f"/apis/{API}/namespaces/{HOME}/ipallocations/{growth['metadata']['name']}/status"
    drill.estate.patch(path, {"status": {"phase": "Released", "releasedAt": growth["status"]["allocatedAt"]}})
    time.sleep(4 * LOOKS_APART)  # for a clock that is looked at now and then, an instant is no proof
    found = rules.check(drill.estate.record.chronicle([web.uid]))
    assert sorted(violation.rule for violation in found) == ["S4", "S5"]
