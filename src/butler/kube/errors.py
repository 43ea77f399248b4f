"""What can go wrong when talking to an API server, as types a program can tell apart.

Two families. An `ApiError` is an answer: the server read the request and said no; it carries the server's `Status`
(reason, message, causes) untouched. The others are the absence of an answer, and there one question matters more
than any other: may the write have happened? `Unreachable` says no, `OutcomeUnknown` says perhaps, and a caller who
gets the latter must read before deciding anew. Nothing here may blur that difference.
"""
# NotFound and Conflict are the API's own words, and read better in an except clause

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from butler.api.printable import one_line, visible

LONGEST = 8192
"""Characters of what a server says of itself that are kept."""
MOST_CAUSES = 200


class KubeError(Exception):
    """Anything this package raises about an API server."""

    @property
    def outcome_unknown(self) -> bool:
        """Whether a write may have happened all the same: read before writing again."""
        return False


class ConfigError(KubeError):
    """The kubeconfig or the credentials in it cannot be used; the message says which file and what to do."""


class Unreachable(KubeError):
    """The request never reached the server: nothing has happened there."""


class OutcomeUnknown(KubeError):
    """The request was sent but not answered: a write may or may not have happened. Read before writing again."""

    @property
    def outcome_unknown(self) -> bool:
        return True


class BadAnswer(KubeError):
    """The server answered with something that is not what was asked for (cut short, or not JSON)."""


class ErrorCause(msgspec.Struct, frozen=True):
    """One field that the server objects to."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[ErrorCause, ...] = ()
    retry_after_seconds: int = 0


LONGEST_FOREIGN: Final = 300
"""Characters that are repeated of what a server says that is not ours."""


class Status(msgspec.Struct, frozen=True):
    """The body of every refusal, as Kubernetes writes it."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details = Details()
    metadata: dict[str, Any] = {}


class ApiError(KubeError):
    """The server's refusal. `status` is its own words; `request` says what was asked."""

    def __init__(self, code: int, status: Status, request: str = "", retry_after: float | None = None) -> None:
        super().__init__(code, status, request, retry_after)
        self.code = code
        self.status = status
        self.request = request
        self.retry_after = retry_after

    def __str__(self) -> str:
        said = self.status.message or self.status.reason or "no reason given"
        return f"{self.request}: {self.code} {said}" if self.request else f"{self.code} {said}"

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def message(self) -> str:
        return self.status.message

    @property
    def causes(self) -> tuple[ErrorCause, ...]:
        return self.status.details.causes

    @property
    def outcome_unknown(self) -> bool:
        # The server itself cannot say: its storage or a hop timed out.
        return self.code in (500, 502, 504)


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class MethodNotAllowed(ApiError):
    pass


class NotAcceptable(ApiError):
    pass


class AlreadyExists(ApiError):
    pass


class Conflict(ApiError):
    pass


class Expired(ApiError):
    """The resourceVersion or continue token is too old (410 Gone): list again."""


class AnswerTooLarge(ApiError):
    pass


class UnsupportedMediaType(ApiError):
    pass


class Invalid(ApiError):
    """Validation refused the object; `causes` names the fields."""


class TooManyRequests(ApiError):
    pass


class ServerError(ApiError):
    pass


class ServiceUnavailable(ServerError):
    pass


class ServerTimeout(ServerError):
    """The server or its storage ran out of time; a write may have happened."""


_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
    "Invalid": Invalid,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Expired,
    413: AnswerTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    503: ServiceUnavailable,
    504: ServerTimeout,
}


def api_error(
    code: int, body: bytes, request: str = "", retry_after: str | None = None, *, foreign: bool = False
) -> ApiError:
    """The error for an HTTP answer. Bodies that are not a Status (a proxy's HTML) keep their first words.

    Of a `foreign` server only a Status is repeated, in short and on one line: a user who sets that server's address
    could otherwise make us repeat what another server answers to us.
    """
    if foreign:
        return error_from_status(_foreign_status(code, body), code, request, retry_after)
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, RecursionError):
        status = Status(message=body[:200].decode("utf-8", "replace").strip(), code=code)
    return error_from_status(status, code, request, retry_after)


class _Kinded(Status, frozen=True):
    kind: str = ""


def _foreign_status(code: int, body: bytes) -> Status:
    try:
        found = msgspec.json.decode(body, type=_Kinded)
    except (msgspec.MsgspecError, RecursionError):
        return Status(code=code)
    if found.kind != "Status":
        return Status(code=code)
    said = "".join(letter if letter.isprintable() else " " for letter in found.message[: 4 * LONGEST_FOREIGN])
    said = " ".join(said.split())
    said = said if len(said) <= LONGEST_FOREIGN else f"{said[: LONGEST_FOREIGN - 1]}…"
    reason = found.reason if re.fullmatch(r"[A-Za-z]{1,64}", found.reason) else ""
    return Status(status=found.status[:16], message=said, reason=reason, code=code, details=found.details)


def error_from_status(status: Status, code: int = 0, request: str = "", retry_after: str | None = None) -> ApiError:
    """The error for a Status that came by any way: an answer's body, or an ERROR line of a watch."""
    code = code or status.code
    status = _printable(status)
    fallback = ServerError if code >= 500 else ApiError
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(code, fallback)
    return kind(code, status, request, _seconds(retry_after, status.details.retry_after_seconds))


def _printable(status: Status) -> Status:
    """What a server says, made safe to print and bounded: a tenant's own API server is a stranger."""
    causes = tuple(
        ErrorCause(one_line(cause.reason, LONGEST), visible(cause.message)[:LONGEST], one_line(cause.field, LONGEST))
        for cause in status.details.causes[:MOST_CAUSES]
    )
    replace = msgspec.structs.replace
    details = replace(status.details, causes=causes) if causes else status.details
    message, reason = visible(status.message)[:LONGEST], one_line(status.reason, LONGEST)
    return replace(status, message=message, reason=reason, details=details)


def _seconds(header: str | None, in_body: int) -> float | None:
    # The date form of Retry-After is not used by Kubernetes; a proxy that sends one is treated as silent.
    if header is not None and header.strip().isdigit():
        return float(header)
    return float(in_body) if in_body > 0 else None
