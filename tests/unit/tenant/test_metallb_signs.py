"""What MetalLB's controller lets be seen of itself."""

from typing import Any

import pytest

from butler.tenant.metallb_health import LONGEST_REFUSAL, Sign, sign_of, size_seen


def state(**condition: Any) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "poolReconcilerValid", **condition}]}}


def test_an_accepted_configuration_tells_when_it_was_read() -> None:
    assert sign_of(state(status="True", lastTransitionTime="2026-01-01T00:00:00Z")) == Sign("2026-01-01T00:00:00Z")


def test_a_refused_one_tells_why_and_not_at_any_length() -> None:
    said = sign_of(state(status="False", lastTransitionTime="t", message="CIDR overlaps " * 1000))
    assert said.refused.startswith("CIDR overlaps")
    assert len(said.refused) == LONGEST_REFUSAL


def test_a_refusal_without_a_word_is_one_too() -> None:
    assert sign_of(state(status="False")).refused


@pytest.mark.parametrize("found", [{}, {"status": {"conditions": []}}, {"status": {"conditions": [{"type": "other"}]}}])
def test_a_state_that_says_nothing_is_no_sign(found: dict[str, Any]) -> None:
    assert sign_of(found) == Sign()


def test_the_pool_tells_how_many_addresses_metallb_sees_in_it() -> None:
    assert size_seen({"status": {"assignedIPv4": 2, "availableIPv4": 3, "assignedIPv6": 0}}) == 5


@pytest.mark.parametrize("pool", [None, {}, {"status": None}, {"status": {}}, {"status": {"assignedIPv4": "2"}}])
def test_an_older_metallb_does_not_tell(pool: dict[str, Any] | None) -> None:
    assert size_seen(pool) is None
