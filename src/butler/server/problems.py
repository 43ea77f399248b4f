"""Errors as problem+json (RFC 9457): each has a type for programs and a sentence that a person can act on."""

from __future__ import annotations

from typing import Any, Final

from butler.kube import errors
from butler.kube.resource import BadName
from butler.server.models.common import FieldError, Problem

MEDIA_TYPE: Final = "application/problem+json"
TYPES: Final = {
    400: ("bad-request", "That cannot be read"),
    401: ("unauthenticated", "Log in first"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Not possible here"),
    406: ("not-acceptable", "Not available in that form"),
    409: ("conflict", "Something else came first"),
    412: ("changed", "It has changed since you looked"),
    413: ("too-large", "Too large"),
    415: ("unsupported-media-type", "Send JSON"),
    421: ("misdirected", "Not this server"),
    422: ("invalid", "Not valid"),
    428: ("version-needed", "Say which version you mean"),
    429: ("too-many", "Too many tries"),
    500: ("defect", "A defect of the server"),
    502: ("bad-answer", "The API server answered nonsense"),
    503: ("unreachable", "The API server is away"),
    504: ("outcome-unknown", "No answer in time"),
}


class RequestRefused(Exception):
    """An answer that is a problem. `detail` says what to do."""

    def __init__(self, status: int, detail: str, *fields: FieldError, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.fields = fields
        self.headers = headers or {}


def problem(status: int, detail: str, fields: tuple[FieldError, ...] = ()) -> Problem:
    word, title = TYPES.get(status, TYPES[500 if status >= 500 else 400])
    return Problem(type=f"urn:butler:problem:{word}", title=title, status=status, detail=detail, errors=fields)


def not_found(kind: str, namespace: str, name: str) -> RequestRefused:
    return RequestRefused(404, f"there is no {kind} {name} in namespace {namespace}: it may have gone a moment ago")


def forbidden(what: str, *, user: str = "") -> RequestRefused:
    """`user` is named where the permission is one that an administrator would bind to them."""
    who = f'you, "{user}", may' if user else "you may"
    return RequestRefused(403, f"{who} not {what}: ask an administrator of the cluster for this permission")


def from_kubernetes(error: errors.KubeError) -> RequestRefused:
    """What the API server said, to the person in whose name it was asked."""
    if isinstance(error, errors.Unreachable | errors.ConfigError):
        return RequestRefused(503, "the Kubernetes API server cannot be reached: try again in a moment", headers=_SOON)
    if isinstance(error, errors.OutcomeUnknown):
        return RequestRefused(
            504, "the API server did not answer: what was asked may have been done; look before trying again"
        )
    if not isinstance(error, errors.ApiError):
        return RequestRefused(
            502, "the API server's answer makes no sense: an administrator should look at the server's log"
        )
    said = error.message or error.reason or f"HTTP {error.code}"
    fields = tuple(FieldError(field=cause.field, message=cause.message) for cause in error.causes if cause.message)
    if isinstance(error, errors.Unauthorized):
        return RequestRefused(
            503, "the API server does not accept this server's own credentials: an administrator should look"
        )
    if isinstance(error, errors.Forbidden):
        return RequestRefused(403, f"{said}: ask an administrator of the cluster for this permission")
    if isinstance(error, errors.NotFound):
        return RequestRefused(404, f"{said}: it may have gone a moment ago")
    if isinstance(error, errors.AlreadyExists):
        return RequestRefused(409, f"{said}: choose another name, or change the one that is there", *fields)
    if isinstance(error, errors.Conflict):
        return RequestRefused(412, f"{said}: look at it again and repeat what you did", *fields)
    if isinstance(error, errors.Invalid | errors.BadRequest):
        return RequestRefused(422, said, *fields)
    if isinstance(error, errors.TooManyRequests):
        return RequestRefused(503, "the API server is busy: try again in a moment", headers=_SOON)
    if error.code >= 500:
        return RequestRefused(503, f"the API server could not do it ({said}): try again in a moment", headers=_SOON)
    return RequestRefused(error.code if error.code in TYPES else 422, said, *fields)


def from_bad_name(error: BadName) -> RequestRefused:
    return RequestRefused(422, f"{error}: give a name alone")


_SOON: Final[dict[str, Any]] = {"Retry-After": "2"}
