"""What a user may do: role-based access control over the Role and Binding objects of one logical cluster.

The objects are compiled into an index once per change of the RBAC tables (the server tells by a version number),
and the rules of a user in a namespace once per user, so a check is a dozen dictionary lookups. Rules only ever
add: there is no deny, and an object that cannot be understood grants nothing.

Aggregated ClusterRoles are resolved here as well as written by a controller, so that a label on a role has its
effect with the next request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from butler.local.apiserver.access.authentication import MASTERS, SERVICE_ACCOUNT_PREFIX, User
from butler.local.apiserver.wire.goformat import quote
from butler.local.apiserver.wire.selectors import label_selector_from_json
from butler.local.apiserver.wire.status import ApiError
from butler.local.apiserver.wire.status import forbidden as refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Json = dict[str, Any]

_REMEMBERED_USERS: Final = 4096


@dataclass(slots=True, frozen=True)
class Attributes:
    """One thing a user wants to do. Without `resource` it is about a path, such as /metrics."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


@dataclass(slots=True, frozen=True)
class RbacObjects:
    roles: Sequence[Json] = ()
    role_bindings: Sequence[Json] = ()
    cluster_roles: Sequence[Json] = ()
    cluster_role_bindings: Sequence[Json] = ()


@dataclass(slots=True, frozen=True)
class Grant:
    """A rule that applies to a user, and which binding gave it."""

    rule: Json
    source: str


@dataclass(slots=True)
class Granted:
    """Everything a user has in one namespace: in order, and indexed for checks."""

    grants: list[Grant] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    by_resource: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)
    by_path: list[tuple[str, str, int]] = field(default_factory=list)

    def add(self, grant: Grant) -> None:
        position = len(self.grants)
        self.grants.append(grant)
        rule = grant.rule
        for verb in rule.get("verbs") or ():
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    self.by_resource.setdefault((verb, group, resource), []).append(position)
            self.by_path.extend((verb, url, position) for url in rule.get("nonResourceURLs") or ())

    def find(self, wanted: Attributes) -> Grant | None:
        positions = self._of_resource(wanted) if wanted.resource else self._of_path(wanted)
        first = min(positions, default=None)
        return None if first is None else self.grants[first]

    def _of_resource(self, wanted: Attributes) -> Iterable[int]:
        resources = [wanted.resource, "*"]
        if wanted.subresource:
            resources = [f"{wanted.resource}/{wanted.subresource}", f"*/{wanted.subresource}", "*"]
        for verb in (wanted.verb, "*"):
            for group in (wanted.group, "*"):
                for resource in resources:
                    for position in self.by_resource.get((verb, group, resource), ()):
                        names = self.grants[position].rule.get("resourceNames")
                        if not names or wanted.name in names:
                            yield position

    def _of_path(self, wanted: Attributes) -> Iterable[int]:
        for verb, url, position in self.by_path:
            if verb in ("*", wanted.verb) and path_covers(url, wanted.path):
                yield position


def path_covers(granted: str, path: str) -> bool:
    if granted == path:
        return True
    return granted.endswith("*") and path.startswith(granted.rstrip("*"))


class Authorizer:
    """Decides for one logical cluster. `objects` is read again whenever `version` gives another number."""

    def __init__(self, objects: Callable[[], RbacObjects], version: Callable[[], int]) -> None:
        self._objects = objects
        self._version = version
        self._compiled_at: int | None = None
        self._policy = Policy(RbacObjects())

    def authorize(self, wanted: Attributes) -> Decision:
        if MASTERS in wanted.user.groups:
            return Decision(True)
        granted = self.granted(wanted.user, wanted.namespace)
        grant = granted.find(wanted)
        if grant:
            return Decision(True, f"RBAC: allowed by {grant.source}")
        if not granted.errors:
            return Decision(False)
        joined = granted.errors[0] if len(granted.errors) == 1 else f"[{', '.join(granted.errors)}]"
        return Decision(False, f"rbac: RBAC: {joined}")

    def granted(self, user: User, namespace: str) -> Granted:
        """All rules that apply to a user in a namespace, those of the whole cluster first."""
        return self.policy().granted(user, namespace)

    def policy(self) -> Policy:
        version = self._version()
        if version != self._compiled_at:
            self._policy = Policy(self._objects())
            self._compiled_at = version
        return self._policy


class Policy:
    """The RBAC objects at one moment."""

    def __init__(self, objects: RbacObjects) -> None:
        self._roles = {_key(role): role for role in objects.roles}
        self._cluster_roles = {_key(role)[1]: role for role in objects.cluster_roles}
        self._by_subject: dict[tuple[str, str], list[tuple[Json, str, str]]] = {}
        self._remembered: dict[tuple[str, tuple[str, ...], str], Granted] = {}
        for binding in objects.cluster_role_bindings:
            self._bind(binding, "")
        for binding in objects.role_bindings:
            self._bind(binding, _key(binding)[0])

    def _bind(self, binding: Json, namespace: str) -> None:
        for subject in binding.get("subjects") or ():
            kind, name = subject.get("kind", ""), subject.get("name", "")
            if kind == "ServiceAccount":
                account_namespace = subject.get("namespace") or namespace
                if not account_namespace:
                    continue
                key = ("User", f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{name}")
                shown = f'{kind} "{name}/{account_namespace}"'
            else:
                key, shown = (kind, name), f'{kind} "{name}"'
            self._by_subject.setdefault(key, []).append((binding, namespace, shown))

    def granted(self, user: User, namespace: str) -> Granted:
        key = (user.name, user.groups, namespace)
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _REMEMBERED_USERS:
                self._remembered.clear()
            found = self._remembered[key] = self._collect(user, namespace)
        return found

    def _collect(self, user: User, namespace: str) -> Granted:
        keys = [("User", user.name), *(("Group", group) for group in user.groups)]
        bound = [each for key in keys for each in self._by_subject.get(key, ())]
        granted = Granted()
        seen: set[int] = set()
        for scope in dict.fromkeys(("", namespace)):
            for binding, binding_namespace, subject in bound:
                if binding_namespace != scope or id(binding) in seen:
                    continue
                seen.add(id(binding))
                self._grant(granted, binding, binding_namespace, subject)
        return granted

    def _grant(self, granted: Granted, binding: Json, namespace: str, subject: str) -> None:
        reference = binding.get("roleRef") or {}
        rules = self.rules_of(reference, namespace)
        if isinstance(rules, str):
            granted.errors.append(rules)
            return
        kind, role = reference.get("kind", ""), reference.get("name", "")
        name = _key(binding)[1]
        shown = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        source = f'{shown} of {kind} "{role}" to {subject}'
        for rule in rules:
            granted.add(Grant(rule, source))

    def rules_of(self, reference: Json, namespace: str) -> list[Json] | str:
        """The rules behind a roleRef, or the sentence that says why there are none."""
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind == "Role":
            role = self._roles.get((namespace, name))
            if role is None:
                return f'role.rbac.authorization.k8s.io "{name}" not found'
            return list(role.get("rules") or ())
        if kind == "ClusterRole":
            role = self._cluster_roles.get(name)
            if role is None:
                return f'clusterrole.rbac.authorization.k8s.io "{name}" not found'
            return aggregated_rules(role, self._cluster_roles.values())
        return f'unsupported role reference kind: "{kind}"'


def aggregated_rules(role: Json, cluster_roles: Iterable[Json]) -> list[Json]:
    """The rules of a ClusterRole: its own, or those of all roles its aggregationRule selects, each once."""
    return _aggregated(role, list(cluster_roles), frozenset())


def _aggregated(role: Json, cluster_roles: list[Json], passed: frozenset[str]) -> list[Json]:
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if not selectors:
        return list(role.get("rules") or ())
    passed |= {_key(role)[1]}
    found: list[Json] = []
    for selector in selectors:
        for other in sorted(cluster_roles, key=_key):
            if _key(other)[1] in passed or not _selects(selector, other):
                continue
            for rule in _aggregated(other, cluster_roles, passed):
                if rule not in found:
                    found.append(rule)
    return found


def _selects(selector: Json, role: Json) -> bool:
    labels = (role.get("metadata") or {}).get("labels") or {}
    try:
        return label_selector_from_json(selector).matches(labels)
    except ApiError:
        return False  # what cannot be understood grants nothing


def forbidden(wanted: Attributes, reason: str = "") -> ApiError:
    """The 403 for what a user may not do, in the words of kube-apiserver."""
    user = quote(wanted.user.name)
    if not wanted.resource:
        why = f"User {user} cannot {wanted.verb} path {quote(wanted.path)}"
    else:
        resource = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
        scope = f"in the namespace {quote(wanted.namespace)}" if wanted.namespace else "at the cluster scope"
        why = f"User {user} cannot {wanted.verb} resource {quote(resource)} in API group {quote(wanted.group)} {scope}"
    why = why.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if reason:
        why = f"{why}: {reason}"
    if not wanted.resource:
        return ApiError(403, "Forbidden", f"forbidden: {why}", details={})
    return refusal(wanted.group, wanted.resource, wanted.name, why)


def _key(item: Json) -> tuple[str, str]:
    metadata = item.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
