"""Lease and ServiceAccount: the small kinds that name the holder of a lock and the identity of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import forbidden, invalid, not_negative, one_of
from kubeserver.resources import Strategy

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]


def default_lease(lease: Json) -> None:
    lease["spec"] = lease.get("spec") or {}


def validate_lease(lease: Json) -> list[FieldError]:
    spec: Json = lease.get("spec") or {}
    errors: list[FieldError] = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    errors += not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
    strategy = spec.get("strategy")
    if strategy:
        errors += one_of("spec.strategy", strategy, ("OldestEmulationVersion",)) if "/" not in strategy else []
    elif spec.get("preferredHolder"):
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


LEASE: Final = Strategy(default=default_lease, validate=validate_lease)
SERVICE_ACCOUNT: Final = Strategy()
