"""Reading and setting conditions, as Kubernetes means them.

A condition's transition time moves only when its status does. Setting what is already so gives back the very same
tuple, which is how a controller knows that there is nothing to write. A message may quote others: it is made safe to
print here, and bounded.
"""

from datetime import datetime

from butler.api.meta import Condition, ConditionStatus
from butler.api.printable import one_line

LONGEST_MESSAGE = 4096


def find_condition(conditions: tuple[Condition, ...], type: str) -> Condition | None:  # noqa: A002
    """The condition of that type, if there is one."""
    return next((condition for condition in conditions if condition.type == type), None)


def condition_holds(conditions: tuple[Condition, ...], type: str) -> bool:  # noqa: A002
    """Whether the condition is there and True; Unknown and absent do not count."""
    found = find_condition(conditions, type)
    return found is not None and found.status is ConditionStatus.TRUE


def with_condition(
    conditions: tuple[Condition, ...],
    *,
    type: str,  # noqa: A002
    status: ConditionStatus | bool,
    reason: str,
    message: str,
    now: datetime,
    observed_generation: int | None = None,
) -> tuple[Condition, ...]:
    """The conditions with this one set; the same tuple when that changes nothing."""
    if isinstance(status, bool):
        status = ConditionStatus.TRUE if status else ConditionStatus.FALSE
    before = find_condition(conditions, type)
    after = Condition(
        type=str(type),
        status=status,
        reason=str(reason),
        message=one_line(message, LONGEST_MESSAGE),
        last_transition_time=before.last_transition_time if before and before.status is status else now,
        observed_generation=observed_generation,
    )
    if before is None:
        return (*conditions, after)
    if before == after:
        return conditions
    return tuple(after if condition is before else condition for condition in conditions)


def without_condition(conditions: tuple[Condition, ...], type: str) -> tuple[Condition, ...]:  # noqa: A002
    """The conditions without this one; the same tuple when it is not there."""
    found = find_condition(conditions, type)
    return conditions if found is None else tuple(condition for condition in conditions if condition is not found)
