"""Two overlapping pools never both hand out, whatever the order of edits, deletions, reads and writes."""

from __future__ import annotations

import pytest

from model.claims import Bounds, ClaimsModel, Rules
from model.search import search

EDITED = Bounds(at_first=(3, 0), edits=3, deletions=0)
RECREATED = Bounds(at_first=(3, 0), edits=2, deletions=1)
FORCED = Bounds(at_first=(3, 2), edits=1, deletions=1, forced=1)
LARGE = {
    "edits": Bounds(at_first=(3, 0), edits=4, deletions=1),
    "by_hand": Bounds(at_first=(3, 2), edits=2, deletions=1, forced=1),
    "moves": Bounds(specs=((1, 3, 2), (2, 3)), at_first=(3, 2), edits=2, deletions=1),
}

WITHOUT = {
    "claimedCIDR_is_written_before_the_claim": (Rules(grow_the_claim_first=False), EDITED),
    "the_claim_shrinks_before_claimedCIDR": (Rules(shrink_the_status_first=False), EDITED),
    "the_claim_is_dropped_with_live_allocations": (Rules(keep_the_claim_of_live_allocations=False), FORCED),
    "the_claim_shrinks_below_live_allocations": (Rules(never_below_live_allocations=False), FORCED),
    "growth_trusts_a_claim_that_a_late_shrink_takes_away": (Rules(growth_renews_the_claim=False), EDITED),
    "growth_trusts_the_claim_of_a_deleted_pool": (Rules(growth_renews_the_claim=False), RECREATED),
    "the_claim_is_dropped_by_an_old_look_at_the_pool": (Rules(shrink_after_a_fresh_look=False), EDITED),
}


@pytest.mark.parametrize("bounds", [EDITED, RECREATED, FORCED], ids=["edited", "recreated", "forced"])
def test_overlapping_pools_never_both_hand_out(bounds: Bounds) -> None:
    outcome = search(ClaimsModel(Rules(), bounds))
    print(outcome.figures())
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize("name", WITHOUT)
def test_each_rule_of_claims_is_needed(name: str) -> None:
    rules, bounds = WITHOUT[name]
    outcome = search(ClaimsModel(rules, bounds))
    print(f"{outcome.figures()}\n{outcome.told()}")
    assert "both handed out high" in outcome.violation


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_overlapping_pools_never_both_hand_out_in_larger_worlds(name: str) -> None:
    outcome = search(ClaimsModel(Rules(), LARGE[name]))
    print(outcome.figures())
    assert not outcome.violation, outcome.told()
