"""Acting as another user.

`Impersonate-*` headers name a user; the client that sends them must be allowed to impersonate that user. Two ways are
checked, as since Kubernetes 1.36: a constrained one (may impersonate this user, and may do this request while doing so)
and the old one (the verb `impersonate` on users, groups, serviceaccounts, uids and userextras). The first that holds
counts; the first refusal is the one reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from kubeserver.access.authentication import (
    AUTHENTICATED,
    MASTERS,
    SERVICE_ACCOUNT_PREFIX,
    SERVICE_ACCOUNTS,
    User,
)
from kubeserver.access.authorization import Attributes, forbidden
from kubeserver.wire.status import ApiError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.access.authorization import Decision

    Authorize = Callable[[Attributes], Decision]

_NODE_PREFIX: Final = "system:node:"
_ANONYMOUS: Final = "system:anonymous"
_UNAUTHENTICATED: Final = "system:unauthenticated"
_EXTRA_PREFIX: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"


def wanted_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """The user that the headers ask to be; None if they do not ask."""
    name, uid = "", ""
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers:
        match header.lower():
            case "impersonate-user":
                name = name or value
            case "impersonate-uid":
                uid = uid or value
            case "impersonate-group":
                groups.append(value)
            case lowered if lowered.startswith(_EXTRA_PREFIX):
                key = unquote(lowered.removeprefix(_EXTRA_PREFIX))
                extra[key] = (*extra.get(key, ()), value)
    if not name:
        if uid or groups or extra:
            raise bad_request("requested impersonation of a group, UID or extra without impersonating a user name")
        return None
    return User(name, uid, tuple(groups), extra)


def impersonated(request: Attributes, wanted: User, authorize: Authorize) -> User:
    """The user to go on as, or the 403 that says what the sender of `request` lacks."""
    refused: ApiError | None = None
    for mode in _modes(wanted):
        try:
            return _Check(request, mode, authorize).user(wanted)
        except ApiError as error:
            refused = refused or error
    assert refused is not None  # the last mode always applies
    raise refused


def _modes(wanted: User) -> list[str]:
    """The constrained mode that fits the wanted user, then the old one (the empty text)."""
    only_name = not (wanted.uid or wanted.groups or wanted.extra)
    if wanted.name.startswith(_NODE_PREFIX):
        return ["arbitrary-node", ""] if only_name else [""]
    if _account(wanted.name):
        return ["serviceaccount", ""] if only_name else [""]
    return ["user-info", ""]


def _account(name: str) -> tuple[str, str] | None:
    namespace, colon, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    if not name.startswith(SERVICE_ACCOUNT_PREFIX) or not colon or not namespace or not account:
        return None
    return namespace, account


@dataclass(slots=True, frozen=True)
class _Check:
    request: Attributes
    mode: str
    authorize: Authorize

    def user(self, wanted: User) -> User:
        if self.mode:
            verb = f"impersonate-on:{self.mode}:{self.request.verb}"
            self._require(replace(self.request, verb=verb))
        actual = self._named(wanted)
        if wanted.uid:
            self._require(self._about("uids", wanted.uid, group=_GROUP))
        self._groups(wanted.groups)
        for key, values in wanted.extra.items():
            for value in values:
                self._require(replace(self._about("userextras", value, group=_GROUP), subresource=key))
        if actual.name == _ANONYMOUS:
            return _in_group(actual, _UNAUTHENTICATED)
        return actual if _UNAUTHENTICATED in actual.groups else _in_group(actual, AUTHENTICATED)

    def _named(self, wanted: User) -> User:
        account = _account(wanted.name)
        if account:
            namespace, name = account
            self._require(replace(self._about("serviceaccounts", name), namespace=namespace))
            fixed = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")
            return wanted if wanted.groups else replace(wanted, groups=fixed)
        if self.mode == "arbitrary-node":
            self._require(self._about("nodes", wanted.name.removeprefix(_NODE_PREFIX)))
            return replace(wanted, groups=("system:nodes",))
        self._require(self._about("users", wanted.name))
        return wanted

    def _groups(self, groups: tuple[str, ...]) -> None:
        for group in groups:
            about = self._about("groups", group)
            if self.mode and group == MASTERS:
                raise forbidden(about, "impersonating the system:masters group is not allowed")
            self._require(about)

    def _about(self, resource: str, name: str, group: str | None = None) -> Attributes:
        if group is None:
            group = _GROUP if self.mode else ""
        verb = f"impersonate:{self.mode}" if self.mode else "impersonate"
        return Attributes(self.request.user, verb, group=group, version="v1", resource=resource, name=name)

    def _require(self, wanted: Attributes) -> None:
        decision = self.authorize(wanted)
        if not decision.allowed:
            raise forbidden(wanted, decision.reason)


def _in_group(user: User, group: str) -> User:
    return user if group in user.groups else replace(user, groups=(*user.groups, group))
