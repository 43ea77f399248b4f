"""What a user may do: role-based access control over the Role and Binding objects of one logical cluster.

Each object is indexed when it changes (the server tells by a version number that one did), and the roles of a user in
a namespace are collected once per user, so a check is a few dictionary lookups for each of them. Rules only ever
add: there is no deny, and an object that cannot be understood grants nothing.

Aggregated ClusterRoles are resolved here as well as written by a controller, so that a label on a role has its
effect with the next request.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubeserver.access.authentication import MASTERS, SERVICE_ACCOUNT_PREFIX, User
from kubeserver.wire.goformat import quote
from kubeserver.wire.selectors import label_selector_from_json
from kubeserver.wire.status import ApiError
from kubeserver.wire.status import forbidden as refusal

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


class Rules:
    """The rules of one role, indexed by the resources that they name.

    The index grows with the text of a role and not with what it spells out: a thousand verbs on a thousand resources
    of a thousand groups are three thousand words, and a billion permissions.
    """

    __slots__ = ("_by_path", "_by_resource", "listed")

    def __init__(self, rules: Sequence[Json]) -> None:
        self.listed = rules
        self._by_resource: dict[str, list[_Rule]] = {}
        self._by_path: list[tuple[str, _Rule]] = []
        for rule in rules:
            ready = _Rule(
                rule,
                frozenset(rule.get("verbs") or ()),
                frozenset(rule.get("apiGroups") or ()),
                frozenset(rule.get("resourceNames") or ()),
            )
            for resource in dict.fromkeys(rule.get("resources") or ()):
                self._by_resource.setdefault(resource, []).append(ready)
            self._by_path += ((url, ready) for url in rule.get("nonResourceURLs") or ())

    def for_resource(self, verb: str, group: str, resource: str, name: str | None) -> Json | None:
        """A rule that allows a verb on a resource, or on `resource/subresource`; on all of them where the name is None.

        An empty name is one, too: that of what has none, such as a list.
        """
        for named in _names_of(resource):
            for ready in self._by_resource.get(named, ()):
                if (
                    (verb in ready.verbs or "*" in ready.verbs)
                    and (group in ready.groups or "*" in ready.groups)
                    and (not ready.names or name in ready.names)
                ):
                    return ready.rule
        return None

    def for_path(self, verb: str, path: str) -> Json | None:
        for url, ready in self._by_path:
            if (verb in ready.verbs or "*" in ready.verbs) and path_covers(url, path):
                return ready.rule
        return None

    def looked_at(self, resource: str) -> int:
        """How many rules may have to be looked at for a resource; for a path, where it is empty."""
        if not resource:
            return len(self._by_path)
        return sum(len(self._by_resource.get(named, ())) for named in _names_of(resource))


def _names_of(resource: str) -> tuple[str, ...]:
    """Under which names rules may speak of a resource, or of `resource/subresource`."""
    _, slash, subresource = resource.partition("/")
    return (resource, f"*/{subresource}", "*") if slash else (resource, "*")


class _Rule(NamedTuple):
    rule: Json
    verbs: frozenset[str]
    groups: frozenset[str]
    names: frozenset[str]


@dataclass(slots=True)
class Granted:
    """Everything a user has in one namespace: the roles in order, each with the binding that gave it."""

    roles: list[tuple[Rules, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def grants(self) -> list[Grant]:
        return [Grant(rule, source) for rules, source in self.roles for rule in rules.listed]

    def find(self, wanted: Attributes) -> Grant | None:
        resource = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
        for rules, source in self.roles:
            if wanted.resource:
                rule = rules.for_resource(wanted.verb, wanted.group, resource, wanted.name)
            else:
                rule = rules.for_path(wanted.verb, wanted.path)
            if rule is not None:
                return Grant(rule, source)
        return None


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
            self._policy.update(self._objects())
            self._compiled_at = version
        return self._policy


class Policy:
    """The RBAC objects of one moment after the other: only what changed since the last is indexed anew."""

    def __init__(self, objects: RbacObjects) -> None:
        self._indexed: dict[int, tuple[Json, Rules]] = {}  # by identity: a role as it was read, and its rules
        self._aggregated: dict[str, Rules] = {}
        self._bindings: dict[int, tuple[Json, str]] = {}  # by identity: a binding, and its namespace
        self._by_subject: dict[tuple[str, str], dict[int, tuple[Json, str, str]]] = {}
        self._remembered: dict[tuple[str, tuple[str, ...], str], Granted] = {}
        self.update(objects)

    def update(self, objects: RbacObjects) -> None:
        """Take over what is there now; what did not change must be the same object as before."""
        self._remembered.clear()
        self._aggregated.clear()
        self._roles = {_key(role): role for role in objects.roles}
        self._cluster_roles = {_key(role)[1]: role for role in objects.cluster_roles}
        here = {id(role) for role in (*objects.roles, *objects.cluster_roles)}
        self._indexed = {key: known for key, known in self._indexed.items() if key in here}
        bindings = {id(binding): (binding, "") for binding in objects.cluster_role_bindings}
        bindings |= {id(binding): (binding, _key(binding)[0]) for binding in objects.role_bindings}
        for gone in self._bindings.keys() - bindings.keys():
            for subject, _ in _subjects(*self._bindings[gone]):
                self._by_subject.get(subject, {}).pop(gone, None)
        for new in bindings.keys() - self._bindings.keys():
            for subject, shown in _subjects(*bindings[new]):
                self._by_subject.setdefault(subject, {})[new] = (*bindings[new], shown)
        self._bindings = bindings

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
        bound = [pair for key in keys for pair in sorted(self._by_subject.get(key, {}).values(), key=_named)]
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
        rules = self._rules(reference, namespace)
        if isinstance(rules, str):
            granted.errors.append(rules)
            return
        kind, role = reference.get("kind", ""), reference.get("name", "")
        name = _key(binding)[1]
        shown = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        source = f'{shown} of {kind} "{role}" to {subject}'
        granted.roles.append((rules, source))

    def _rules(self, reference: Json, namespace: str) -> Rules | str:
        """As `rules_of`, indexed."""
        found = self._role(reference, namespace)
        if isinstance(found, str):
            return found
        if aggregates(found):
            name = reference.get("name", "")
            if name not in self._aggregated:
                self._aggregated[name] = Rules(aggregated_rules(found, self._cluster_roles.values()))
            return self._aggregated[name]
        if id(found) not in self._indexed:
            self._indexed[id(found)] = found, Rules(found.get("rules") or ())
        return self._indexed[id(found)][1]

    def rules_of(self, reference: Json, namespace: str) -> Sequence[Json] | str:
        """The rules behind a roleRef, or the sentence that says why there are none."""
        rules = self._rules(reference, namespace)
        return rules if isinstance(rules, str) else rules.listed

    def _role(self, reference: Json, namespace: str) -> Json | str:
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind == "Role":
            return self._roles.get((namespace, name)) or f'role.rbac.authorization.k8s.io "{name}" not found'
        if kind == "ClusterRole":
            return self._cluster_roles.get(name) or f'clusterrole.rbac.authorization.k8s.io "{name}" not found'
        return f'unsupported role reference kind: "{kind}"'


def _subjects(binding: Json, namespace: str) -> Iterable[tuple[tuple[str, str], str]]:
    """Whom a binding is for: as a key, and as it is shown."""
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind != "ServiceAccount":
            yield (kind, name), f'{kind} "{name}"'
        elif account_namespace := subject.get("namespace") or namespace:
            user = f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{name}"
            yield ("User", user), f'{kind} "{name}/{account_namespace}"'


def _named(bound: tuple[Json, str, str]) -> str:
    return _key(bound[0])[1]


def aggregates(role: Json) -> bool:
    """Whether the rules of a ClusterRole are those of others."""
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def aggregated_rules(role: Json, cluster_roles: Iterable[Json]) -> list[Json]:
    """The rules of a ClusterRole: its own, or those of all roles its aggregationRule selects, each once."""
    if not aggregates(role):
        return list(role.get("rules") or ())
    found: dict[str, Json] = {}
    _aggregate(role, sorted(cluster_roles, key=_key), found, set())
    return list(found.values())


def _aggregate(role: Json, cluster_roles: list[Json], found: dict[str, Json], seen: set[str]) -> None:
    """Add the rules of a role to those found. No role is looked into twice: roles may select each other."""
    seen.add(_key(role)[1])
    if not aggregates(role):
        for rule in role.get("rules") or ():
            found.setdefault(json.dumps(rule, sort_keys=True), rule)
        return
    for selector in role["aggregationRule"]["clusterRoleSelectors"]:
        try:
            understood = label_selector_from_json(selector)
        except ApiError:
            continue  # what cannot be understood grants nothing
        for other in cluster_roles:
            if _key(other)[1] not in seen and understood.matches((other.get("metadata") or {}).get("labels") or {}):
                _aggregate(other, cluster_roles, found, seen)


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
