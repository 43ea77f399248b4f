"""The query of a request, read and checked once: what a client may ask of a list, a write or a deletion.

Wrong values are refused with the words of Kubernetes before anything else happens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from kubeserver.wire.names import validate_field_manager
from kubeserver.wire.status import ApiError, FieldError, bad_request, invalid

Json = dict[str, Any]
Query = dict[str, str]

META: Final = "meta.k8s.io"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DIGITS: Final = 40  # far more than 64 bits have, and few enough to convert
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"", "0", "f", "F", "false", "FALSE", "False"})
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")


@dataclass(slots=True, frozen=True)
class ListOptions:
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    watch: bool = False
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout: float | None = None


@dataclass(slots=True, frozen=True)
class WriteOptions:
    dry_run: bool = False
    field_validation: str = "Warn"
    manager: str = ""  # given by the client; empty: the user agent names it
    force: bool | None = None


@dataclass(slots=True, frozen=True)
class DeleteOptions:
    dry_run: bool = False
    grace_period: int | None = None
    propagation: str = ""
    uid: str | None = None
    resource_version: str | None = None


def flag(query: Query, name: str) -> bool:
    """A boolean of the query; as in Kubernetes, a bare `?watch` and any unknown text mean true."""
    if name not in query:
        return False
    return query[name] not in _FALSE or query[name] == ""


def _integer(query: Query, name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _DIGITS or not -(1 << 63) <= int(text) < 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def list_options(query: Query) -> ListOptions:
    """Read a list or watch; refuses combinations that have no meaning."""
    initial = query.get("sendInitialEvents")
    timeout = _integer(query, "timeoutSeconds")
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=max(0, _integer(query, "limit") or 0),
        continue_=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        send_initial_events=None if initial is None else initial in _TRUE,
        timeout=None if timeout is None else float(timeout),
    )
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise invalid(META, "ListOptions", "", errors)
    return options


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    match = options.resource_version_match
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(
            FieldError(
                "FieldValueForbidden",
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )
        )
    if match and options.send_initial_events is None:
        errors.append(
            FieldError(
                "FieldValueForbidden",
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    return errors


def _list_errors(options: ListOptions) -> list[FieldError]:
    match, version = options.resource_version_match, options.resource_version

    def forbidden(detail: str) -> FieldError:
        return FieldError("FieldValueForbidden", "resourceVersionMatch", detail)

    errors: list[FieldError] = []
    if options.send_initial_events is not None:
        errors.append(FieldError("FieldValueForbidden", "sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not match:
        return errors
    if options.continue_:
        errors.append(forbidden("resourceVersionMatch is forbidden when continue is provided"))
    if not version:
        errors.append(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match not in {"Exact", "NotOlderThan"}:
        errors.append(
            FieldError("FieldValueNotSupported", "resourceVersionMatch", "", match, ("Exact", "NotOlderThan", ""))
        )
    if match == "Exact" and version == "0":
        errors.append(forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return errors


def write_options(query: Query, kind: str) -> WriteOptions:
    """Read the options of a create, update or patch; `kind` names them in a refusal (`CreateOptions`)."""
    errors = _dry_run_errors(query)
    manager = query.get("fieldManager", "")
    errors += validate_field_manager(manager, "fieldManager")
    validation = query.get("fieldValidation", "")
    if validation and validation not in _FIELD_VALIDATION:
        errors.append(FieldError("FieldValueNotSupported", "fieldValidation", "", validation, _FIELD_VALIDATION))
    if errors:
        raise invalid(META, kind, "", errors)
    return WriteOptions(
        dry_run="dryRun" in query,
        field_validation=validation or "Warn",
        manager=manager,
        force=flag(query, "force") if "force" in query else None,
    )


def delete_options(query: Query, body: Json | None) -> DeleteOptions:
    """Read a deletion: the body wins over the query, as in Kubernetes."""
    grace = _integer(query, "gracePeriodSeconds")
    propagation = query.get("propagationPolicy", "")
    dry_run = "dryRun" in query
    errors = _dry_run_errors(query)
    uid: str | None = None
    version: str | None = None
    if body:
        grace = body.get("gracePeriodSeconds", grace)
        propagation = body.get("propagationPolicy") or propagation
        if body.get("orphanDependents") is not None and propagation:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(FieldError("FieldValueInvalid", "propagationPolicy", detail, propagation))
        elif body.get("orphanDependents") is not None:
            propagation = "Orphan" if body["orphanDependents"] else "Background"
        if body.get("dryRun"):
            dry_run = True
            errors += _dry_run_errors({"dryRun": ",".join(map(str, body["dryRun"]))})
        preconditions = body.get("preconditions") or {}
        uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    supported = ("Foreground", "Background", "Orphan")
    if propagation and propagation not in supported:
        errors.append(FieldError("FieldValueNotSupported", "propagationPolicy", "", propagation, (*supported, "nil")))
    if errors:
        raise invalid(META, "DeleteOptions", "", errors)
    return DeleteOptions(dry_run, grace, propagation, uid, version)


def _dry_run_errors(query: Query) -> list[FieldError]:
    given = query.get("dryRun")
    if given is None or given == "All":
        return []
    return [FieldError("FieldValueNotSupported", "dryRun", "", given.split(","), ("All",))]


def resource_version(text: str) -> int:
    """A resourceVersion of a list or watch as a revision; refuses what is not a number, as a storage error."""
    well_formed = text.isascii() and text.isdecimal()
    if not well_formed or len(text) > _DIGITS or int(text) >= 1 << 64:
        detail = f'strconv.ParseUint: parsing "{text}": {"value out of range" if well_formed else "invalid syntax"}'
        raise ApiError(500, "", FieldError("FieldValueInvalid", "resourceVersion", detail, text).text())
    return int(text)
