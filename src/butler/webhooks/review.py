"""AdmissionReview v1: the question an API server asks about a write, and our answer to it.

A refusal is written for the person in front of kubectl. Where fields are to blame it is a Status of reason Invalid
with one cause per field, which kubectl prints as it prints the refusals of a schema (and `kubectl edit` opens the
editor again); otherwise it is one sentence. A question that is none raises `BadReview`: the server turns that into
a plain HTTP error, which the API server treats as a failed call. By the failure policy of some of our webhooks it then
lets the write happen, so an object that its author made unreadable must not be one: it is refused (`unreadable`).

Objects inside the question stay raw text here. The code that knows their kind decodes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.ipam.layout import FieldProblem

REVIEW_API: Final = "admission.k8s.io/v1"
REVIEW_KIND: Final = "AdmissionReview"
MOST_WARNING_CHARACTERS: Final = 256
"""A Warning header that is longer is cut off by API servers."""

Json = dict[str, Any]


class BadReview(ValueError):
    """What was sent is no question that we can answer."""


class GroupKind(msgspec.Struct, frozen=True):
    """The kind of the object that is written."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupResource(msgspec.Struct, frozen=True):
    """The same as paths call it."""

    group: str = ""
    version: str = ""
    resource: str = ""

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class UserInfo(msgspec.Struct, frozen=True):
    """Who writes, as the API server knows them."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """`request` of an AdmissionReview, as far as we act on it."""

    uid: str
    operation: str
    resource: GroupResource
    kind: GroupKind = GroupKind()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    object: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    old_object: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    user_info: UserInfo = UserInfo()
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: Question | None = None


_read = msgspec.json.Decoder(_Review).decode
_write = msgspec.json.Encoder().encode


def read(body: bytes) -> Question:
    """The question in a request's body; raises BadReview."""
    try:
        review = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the body is no AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (REVIEW_API, REVIEW_KIND):
        raise BadReview(
            f"expected {REVIEW_KIND} of {REVIEW_API}, got kind {review.kind[:64]!r} of {review.api_version[:64]!r}"
        )
    if review.request is None:
        raise BadReview("the AdmissionReview holds no request")
    if not review.request.uid:
        raise BadReview("the request of the AdmissionReview has no uid")
    return review.request


_UID: Final = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([^"\\\\]{1,128})"')
_HEAD: Final = 1024
"""Bytes in which API servers have named the question; nothing in there is the author's."""


def unreadable(body: bytes, why: str) -> bytes | None:
    """The refusal of a question that cannot be read, such as one about an object that nests thousands of levels deep;
    None where it is not known to be a question."""
    found = _UID.search(body, 0, _HEAD)
    if found is None:
        return None
    status = _status(400, "BadRequest", f"nothing was changed, because it could not be checked: {why}", {})
    response = {"uid": found[1].decode(errors="replace"), "allowed": False, "status": status}
    return _write({"apiVersion": REVIEW_API, "kind": REVIEW_KIND, "response": response})


def raw(part: msgspec.Raw) -> bytes | None:
    """The text of an object inside a question; None where there is none (the API server writes null)."""
    text = bytes(part)
    return None if text in (b"", b"null") else text


class AdmissionAnswer(NamedTuple):
    """Whether the write may happen, and what its author is told."""

    status: Json | None = None
    """Why not, as a Status; None when the write may happen."""
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        return self.status is None


def allow(warnings: Sequence[str] = ()) -> AdmissionAnswer:
    return AdmissionAnswer(None, tuple(warnings))


def refuse(
    question: Question, problems: Sequence[FieldProblem], obj: Json, warnings: Sequence[str] = ()
) -> AdmissionAnswer:
    """Say no because of fields of `obj`, each with its value and what is wrong with it."""
    causes = [_cause(problem, obj) for problem in problems]
    message = "; ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
    details = _details(question) | {"causes": causes}
    return AdmissionAnswer(_status(422, "Invalid", message, details), tuple(warnings))


def forbid(question: Question, why: str) -> AdmissionAnswer:
    """Say no to what is asked, whatever its fields say."""
    return AdmissionAnswer(_status(403, "Forbidden", why, _details(question)))


def malformed(question: Question, why: str) -> AdmissionAnswer:
    """Say no to a question about something that we cannot read or do not know."""
    return AdmissionAnswer(_status(400, "BadRequest", why, _details(question)))


def undecided(question: Question, why: str) -> AdmissionAnswer:
    """Say no because we could not find out; the same write may be right in a moment."""
    message = f"nothing was changed, because it could not be checked: {why}; try again in a moment"
    return AdmissionAnswer(_status(503, "ServiceUnavailable", message, _details(question)))


def write(question: Question, answer: AdmissionAnswer) -> bytes:
    """The AdmissionReview that carries an answer."""
    response: Json = {"uid": question.uid, "allowed": answer.allowed}
    if answer.status is not None:
        response["status"] = answer.status
    if answer.warnings:
        response["warnings"] = [_shortened(warning) for warning in answer.warnings]
    return _write({"apiVersion": REVIEW_API, "kind": REVIEW_KIND, "response": response})


def value_at(obj: Json, field: str) -> object:
    """The value that a path such as `spec.reserved[1].cidr` leads to; None where it leads nowhere."""
    found: Any = obj
    for step in field.replace("[", ".").replace("]", "").split("."):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return cast("object", found)


def _cause(problem: FieldProblem, obj: Json) -> Json:
    value = value_at(obj, problem.field)
    # As API servers put it: a value that is missing has none to show, and a large one is better looked up.
    if isinstance(value, str | int):
        shown = f"Invalid value: {_write(value).decode()}: {problem.message}"
    else:
        shown = f"Invalid value: {problem.message}"
    return {"reason": "FieldValueInvalid", "field": problem.field, "message": shown}


def _status(code: int, reason: str, message: str, details: Json) -> Json:
    return {"status": "Failure", "code": code, "reason": reason, "message": message, "details": details}


def _details(question: Question) -> Json:
    # The name in details is that of the object for people, and kubectl writes it in quotes after the kind.
    kind = question.kind.kind or question.resource.resource
    found = {"name": question.name, "group": question.kind.group or question.resource.group, "kind": kind}
    return {field: value for field, value in found.items() if value}


def _shortened(warning: str) -> str:
    if len(warning) <= MOST_WARNING_CHARACTERS:
        return warning
    return warning[: MOST_WARNING_CHARACTERS - 3] + "..."
