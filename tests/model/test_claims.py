"""Two overlapping pools never both hand out, whatever the order of edits, deletions, reads and writes."""

from __future__ import annotations

import pytest

from model.claims import Bounds, ClaimsModel, Rules
from model.search import search

EDITED = Bounds(at_first=(3, 0), edits=3, deletions=0)
RECREATED = Bounds(at_first=(3, 0), edits=2, deletions=1)
FORCED = Bounds(at_first=(3, 2), edits=1, deletions=1, forced=1)
FORCED_TWICE = Bounds(at_first=(3, 2), edits=1, deletions=2, forced=1)
MOVED = Bounds(specs=((1, 3, 4), (2,)), at_first=(3, 2), edits=2, deletions=0)
LOST = Bounds(at_first=(3, 2), edits=0, deletions=0, losses=1)
SMALL = {"edited": EDITED, "recreated": RECREATED, "finalizer_removed_by_hand": FORCED, "moved": MOVED}
SMALL["finalizer_removed_by_hand_from_a_later_pool"] = FORCED_TWICE
LARGE = {
    "edited_and_recreated": Bounds(at_first=(3, 0), edits=4, deletions=2),
    "finalizer_removed_by_hand": Bounds(at_first=(3, 2), edits=3, deletions=2, forced=1),
    "both_move": Bounds(specs=((1, 2, 4), (2, 4)), at_first=(2, 4), edits=3, deletions=1),
    "both_grow_and_shrink": Bounds(specs=((1, 3), (2, 3)), at_first=(3, 2), edits=4, deletions=0),
}

WITHOUT = {
    "claimedCIDR_is_written_before_the_claim": (Rules(grow_the_entry_first=False), EDITED),
    "the_claim_shrinks_before_claimedCIDR": (Rules(shrink_the_status_first=False), EDITED),
    "the_claim_is_changed_whatever_became_of_it": (Rules(claims_are_swapped=False), EDITED),
    "claimedCIDR_grows_whatever_became_of_the_pool": (Rules(status_for_the_pool_looked_at=False), EDITED),
    "the_claim_does_not_name_the_generation": (Rules(entry_names_the_generation=False), EDITED),
    "the_claim_does_not_name_the_uid": (Rules(entry_names_the_uid=False), RECREATED),
    "the_claims_are_read_after_the_pool": (Rules(pool_is_read_after_the_claims=False), EDITED),
    "of_two_entries_in_one_write_neither_counts_for_the_other": (
        Rules(one_write_sees_its_own_entries=False),
        Bounds(at_first=(3, 2), edits=0, deletions=0),
    ),
    "a_process_that_let_a_pool_go_drops_the_claim_of_the_next_one_too": (
        Rules(emptied_names_the_uid=False),
        FORCED_TWICE,
    ),
    "the_claim_is_given_up_under_live_allocations": (Rules(entry_keeps_what_is_held=False), FORCED),
}
DOUBLE = {
    "what_is_held_is_checked_nowhere": (
        {"status_keeps_what_is_held": False, "entry_keeps_what_is_held": False},
        EDITED,
    ),
    "a_claim_is_made_for_a_pool_that_was_edited_or_holds_on": (
        {"pool_is_what_was_looked_at": False, "nothing_left_to_give_up": False},
        EDITED,
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_overlapping_pools_never_both_hand_out_and_each_gets_what_is_free(name: str) -> None:
    outcome = search(ClaimsModel(Rules(), SMALL[name]))
    print(outcome.figures())
    assert not outcome.violation, outcome.told()


@pytest.mark.parametrize("name", WITHOUT)
def test_each_rule_of_claims_is_needed(name: str) -> None:
    rules, bounds = WITHOUT[name]
    outcome = search(ClaimsModel(rules, bounds), progress=False)
    print(f"{outcome.figures()}\n{outcome.told()}")
    assert "both handed out high" in outcome.violation


@pytest.mark.parametrize("name", DOUBLE)
def test_of_two_rules_against_the_same_danger_one_is_needed(name: str) -> None:
    missing, bounds = DOUBLE[name]
    outcome = search(ClaimsModel(Rules(**missing), bounds), progress=False)
    print(f"{outcome.figures()}\n{outcome.told()}")
    assert "both handed out high" in outcome.violation
    for rule in missing:
        assert not search(ClaimsModel(Rules(**{rule: False}), bounds)).violation


def test_a_claims_config_map_deleted_by_hand_is_a_danger() -> None:
    """The one known hole: the controller that creates it again cannot see a claimedCIDR that is still on its way."""
    outcome = search(ClaimsModel(Rules(), LOST))
    print(f"{outcome.figures()}\n{outcome.told()}")
    assert "both handed out high" in outcome.violation
    assert any("deletes the ConfigMap" in words for words in outcome.story)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_overlapping_pools_never_both_hand_out_in_larger_worlds(name: str) -> None:
    outcome = search(ClaimsModel(Rules(), LARGE[name]))
    print(outcome.figures())
    assert not outcome.violation, outcome.told()
