"""Event, in its two faces: core v1, and events.k8s.io/v1 with newer names for the same fields.

One object is stored, in the shape of core v1, and either API shows it in its own. Both are checked by the rules
of events that carry an eventTime, or of those that do not; only events.k8s.io is strict beyond that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import invalid, qualified_name, required, unchanged
from kubeserver.resources import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

# events.k8s.io name -> core name
_NAMES: Final = {
    "note": "message",
    "regarding": "involvedObject",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_CORE_NAMES: Final = {core: new for new, core in _NAMES.items()}


def to_core(event: Json) -> Json:
    """An events.k8s.io Event as it is stored."""
    return default_core({_NAMES.get(key, key): value for key, value in event.items()} | {"apiVersion": "v1"})


def from_core(event: Json) -> Json:
    """A stored Event as events.k8s.io shows it."""
    shown = {_CORE_NAMES.get(key, key): value for key, value in event.items()}
    shown["apiVersion"] = "events.k8s.io/v1"
    for field in ("reportingController", "reportingInstance"):
        if not shown.get(field):
            shown.pop(field, None)
    shown.setdefault("eventTime", None)
    return shown


def default_core(event: Json) -> Json:
    """Core events show these fields even when they say nothing."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(field, None)
    for field in ("reportingComponent", "reportingInstance"):
        event.setdefault(field, "")
    return event


def _default_core(event: Json) -> None:
    default_core(event)


def default_new(event: Json) -> None:
    event.setdefault("eventTime", None)
    event.setdefault("regarding", {})
    event.setdefault("deprecatedSource", {})
    for field in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        event.setdefault(field, None)


def validate_core(event: Json) -> list[FieldError]:
    return _legacy(event, "reportingComponent")


def validate_new(event: Json) -> list[FieldError]:
    core = {_NAMES.get(key, key): value for key, value in event.items()}
    errors = _legacy(core, "reportingController")
    if event.get("metadata", {}).get("resourceVersion"):
        return errors  # an update, which is checked against what was there
    errors += _series(core)
    if not core.get("eventTime"):
        errors.append(required("eventTime"))
    if core.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {core.get('type', '')}"))
    errors += [
        invalid(field, "", "needs to be unset")
        for field in ("firstTimestamp", "lastTimestamp", "count")
        if core.get(field)
    ]
    if any((core.get("source") or {}).values()):
        errors.append(invalid("source", "", "needs to be unset"))
    return errors


def _legacy(event: Json, reporter: str) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    mismatch = [invalid("involvedObject.namespace", about, "does not match event.namespace")]
    if not event.get("eventTime"):
        agrees = namespace == about if about else namespace in ("", "default")
        return [] if agrees else mismatch
    errors = [] if about or namespace in ("default", "kube-system") else mismatch
    component = event.get("reportingComponent") or ""
    if not component:
        errors.append(required(reporter))
    errors += qualified_name(reporter, component)
    for field, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
        text = event.get(field) or ""
        if not text:
            errors.append(required(field))
        if len(text.encode()) > limit:
            errors.append(invalid(field, "", f"can have at most {limit} characters"))
    if len((event.get("message") or "").encode()) > 1024:
        errors.append(invalid("message", "", "can have at most 1024 characters"))
    return errors


def _series(event: Json) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


_FIXED: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
)


def validate_new_update(event: Json, old: Json) -> list[FieldError]:
    new = {_NAMES.get(key, key): value for key, value in event.items()}
    before = {_NAMES.get(key, key): value for key, value in old.items()}
    errors = _series(new) if new.get("series") != before.get("series") else []
    for field in _FIXED:
        errors += unchanged(field, new.get(field), before.get(field))
    errors += unchanged("reportingController", new.get("reportingComponent"), before.get("reportingComponent"))
    errors += unchanged("reportingInstance", new.get("reportingInstance"), before.get("reportingInstance"))
    return errors


def _reader(*path: str) -> Callable[[Json], str]:
    def read(event: Json) -> str:
        found: Any = event
        for part in path:
            found = (found or {}).get(part)
        return str(found or "")

    return read


_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _source(event: Json) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent") or "")


CORE: Final = Strategy(
    default=_default_core,
    validate=validate_core,
    selectable={
        **{f"involvedObject.{text}": _reader("involvedObject", text) for text in _REFERENCE},
        "reason": _reader("reason"),
        "reportingComponent": _reader("reportingComponent"),
        "source": _source,
        "type": _reader("type"),
    },
)
NEW: Final = Strategy(
    default=default_new,
    validate=validate_new,
    validate_update=validate_new_update,
    selectable={
        **{f"regarding.{text}": _reader("regarding", text) for text in _REFERENCE},
        "reason": _reader("reason"),
        "reportingController": _reader("reportingController"),
        "type": _reader("type"),
    },
)
