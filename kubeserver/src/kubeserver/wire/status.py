"""Refusals, in the words of Kubernetes.

Everything the server says no to ends as a `metav1.Status` object. `ApiError` is that object as an exception;
the functions below make each kind of refusal with the same code, reason, message and details that
kube-apiserver gives, because kubectl, helm and client libraries branch on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kubeserver.wire.goformat import quote, shown

Json = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Cause:
    """One entry of `details.causes`."""

    reason: str
    message: str
    field: str

    def to_json(self) -> Json:
        found = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in found.items() if value}


class ApiError(Exception):
    """A refusal; `status()` is what the client gets to read."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.metadata: Json = {}  # of the Status itself: an expired list says here how to go on

    def status(self) -> Json:
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if not self.reason:
            del body["reason"]
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


class Omitted:
    """Stands for a value that a field error does not show: that of an object or a list a rule refused."""

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = Omitted()


@dataclass(slots=True, frozen=True)
class FieldError:
    """What is wrong with one field, formatted as the field validation of Kubernetes does.

    `kind` is the cause's reason: FieldValueRequired, FieldValueInvalid, FieldValueNotSupported,
    FieldValueDuplicate, FieldValueForbidden, FieldValueTooLong, FieldValueTooShort, FieldValueTooMany,
    FieldValueTooFew, FieldValueTypeInvalid, FieldValueNotFound, InternalError. `value` of TooMany and TooFew is
    how many there are.
    """

    kind: str
    path: str
    detail: str
    value: Any = field(default=None)
    supported: tuple[str, ...] = ()

    def body(self) -> str:
        """The text without the field's path: a cause's message."""
        title = _TITLES[self.kind]
        if self.kind in _WITHOUT_VALUE or self.value is OMITTED:
            text = title
        else:
            text = f"{title}: {shown(self.value)}"
            if self.supported:
                return f"{text}: supported values: {', '.join(quote(item) for item in self.supported)}"
        return f"{text}: {self.detail}" if self.detail else text

    def text(self) -> str:
        return f"{self.path}: {self.body()}"

    def cause(self) -> Cause:
        return Cause(self.kind, self.body(), self.path)


_TITLES = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooShort": "Too short",
    "FieldValueTooMany": "Too many",
    "FieldValueTooFew": "Too few",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotFound": "Not found",
    "InternalError": "Internal error",
}
_WITHOUT_VALUE = frozenset(
    {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "FieldValueTooShort", "InternalError"}
)


def group_resource(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str = "", **more: Any) -> Json:
    found = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in found.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        404,
        "NotFound",
        f"{group_resource(group, plural)} {quote(name)} not found",
        details=_details(group, plural, name),
    )


def already_exists(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        409,
        "AlreadyExists",
        f'{group_resource(group, plural)} "{name}" already exists',
        details=_details(group, plural, name),
    )


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {group_resource(group, plural)} "{name}": {why}',
        details=_details(group, plural, name),
    )


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    subject = (
        f'{group_resource(group, plural)} "{name}" is forbidden'
        if name
        else f"{group_resource(group, plural)} is forbidden"
    )
    return ApiError(403, "Forbidden", f"{subject}: {why}", details=_details(group, plural, name))


def invalid(group: str, kind: str, name: str, errors: list[FieldError]) -> ApiError:
    """422 with one cause per field; the message lists them as kube-apiserver does."""
    texts = list(dict.fromkeys(error.text() for error in errors))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    title = f"{kind}.{group}" if group else kind
    details = _details(group, kind, name)
    details["causes"] = [error.cause().to_json() for error in errors]
    return ApiError(422, "Invalid", f'{title} "{name}" is invalid: {joined}', details=details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def unsupported_media_type(supported: list[str]) -> ApiError:
    listed = ", ".join(supported)
    return ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {listed}",
    )


def too_many_requests(message: str) -> ApiError:
    return ApiError(429, "TooManyRequests", message, details={"retryAfterSeconds": 1}, headers={"Retry-After": "1"})


def internal(message: str) -> ApiError:
    return ApiError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )
