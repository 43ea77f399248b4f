"""A user cannot grant permissions that the user does not have.

Writing a role needs every permission in it, and writing a binding needs every permission of the role it points
to, unless the writer may `escalate` that role or `bind` that role by name. Called by the write path for RBAC
objects, after admission and before storing; raises the 403 that kube-apiserver gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from kubeserver.access.authentication import MASTERS, User
from kubeserver.access.authorization import Attributes, aggregates
from kubeserver.wire.goformat import quote
from kubeserver.wire.status import ApiError, forbidden, not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubeserver.access.authorization import Authorizer, Rules

Json = dict[str, Any]

_GROUP: Final = "rbac.authorization.k8s.io"
_EVERYTHING: Final[list[Json]] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_MOST_PARTS: Final = 20_000  # that are checked one by one: about 50 ms
_MOST_LOOKED_AT: Final = 500_000  # rules of their author, for all parts together
_ROLE_KINDS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}


class _TooMuch(Exception):
    """Comparing these rules would keep other clients waiting for too long."""


def refuse_escalation(
    authorizer: Authorizer, user: User, *, plural: str, namespace: str, new: Json, old: Json | None = None
) -> None:
    """Raise unless `user` holds what the role or binding `new` would give."""
    if MASTERS in user.groups or (old is not None and _only_collected(new, old)):
        return
    if plural in ("roles", "clusterroles"):
        _refuse_role(_Grantor(authorizer, user, namespace), plural, new, old)
    elif plural in ("rolebindings", "clusterrolebindings"):
        _refuse_binding(_Grantor(authorizer, user, namespace), plural, new)


@dataclass(slots=True, frozen=True)
class _Grantor:
    """Who hands out permissions, and where."""

    authorizer: Authorizer
    user: User
    namespace: str

    def may(self, verb: str, group: str, plural: str, name: str) -> bool:
        wanted = Attributes(
            self.user, verb, group=group, version="*", resource=plural, namespace=self.namespace, name=name
        )
        return self.authorizer.authorize(wanted).allowed

    def lacks(self, rules: Sequence[Json]) -> list[Json]:
        """The parts of `rules` that no rule of the grantor covers; raises _TooMuch where that is endless work."""
        held = [rules for rules, _ in self.authorizer.granted(self.user, self.namespace).roles]
        found, left = [], _MOST_LOOKED_AT
        for part in (part for rule in rules for part in _parts(rule)):
            left -= sum(item.looked_at(part["resources"][0] if "resources" in part else "") for item in held)
            if left < 0:
                raise _TooMuch
            if not any(_covers(item, part) for item in held):
                found.append(part)
        return found


def _refuse_role(grantor: _Grantor, plural: str, new: Json, old: Json | None) -> None:
    # On a create the real server asks about the name in the path, and a POST has none.
    if grantor.may("escalate", _GROUP, plural, _name(new) if old is not None else ""):
        return
    _refuse_rules(grantor, plural, new, new.get("rules") or [])
    aggregated = aggregates(new) or (old is not None and aggregates(old))
    if aggregated and grantor.lacks(_EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise forbidden(_GROUP, plural, _name(new), why)


def _refuse_binding(grantor: _Grantor, plural: str, new: Json) -> None:
    reference = new.get("roleRef") or {}
    role_plural = _ROLE_KINDS.get(reference.get("kind", ""))
    name = reference.get("name", "")
    if role_plural and grantor.may("bind", reference.get("apiGroup", ""), role_plural, name):
        return
    rules = grantor.authorizer.policy().rules_of(reference, grantor.namespace)
    if isinstance(rules, str):
        if role_plural:
            raise not_found(_GROUP, plural, name)  # sic: the real server names the binding's resource
        raise ApiError(500, "", rules)
    _refuse_rules(grantor, plural, new, rules)


def _refuse_rules(grantor: _Grantor, plural: str, new: Json, rules: Sequence[Json]) -> None:
    if (count := sum(map(_count, rules))) > _MOST_PARTS:
        why = f"the role spells out {count} permissions, and {_MOST_PARTS} can be checked: split it, or use *"
        raise forbidden(_GROUP, plural, _name(new), why)
    try:
        lacking = grantor.lacks(rules)
    except _TooMuch:
        why = f"user {quote(grantor.user.name)} has too many rules to compare the role with: split it, or use *"
        raise forbidden(_GROUP, plural, _name(new), why) from None
    if lacking:
        groups = " ".join(quote(group) for group in grantor.user.groups)
        described = "\n".join(sorted({_described(rule) for rule in _compacted(lacking)}))
        why = (
            f"user {quote(grantor.user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions "
            f"not currently held:\n{described}"
        )
        raise forbidden(_GROUP, plural, _name(new), why)


def _count(rule: Json) -> int:
    """How many parts a rule has; a short text can spell out billions."""
    verbs, groups, resources, names, urls = (
        len(rule.get(key) or ()) for key in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    )
    return verbs * (groups * resources * (names or 1) + urls)


def _parts(rule: Json) -> list[Json]:
    """A rule as rules of one verb on one resource (and name) or one path."""
    verbs = rule.get("verbs") or []
    found: list[Json] = []
    for group, resource, verb in product(rule.get("apiGroups") or [], rule.get("resources") or [], verbs):
        part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        names = rule.get("resourceNames") or []
        found.extend({**part, "resourceNames": [name]} for name in names)
        if not names:
            found.append(part)
    for url, verb in product(rule.get("nonResourceURLs") or [], verbs):
        found.append({"nonResourceURLs": [url], "verbs": [verb]})
    return found


def _covers(held: Rules, part: Json) -> bool:
    (verb,) = part["verbs"]
    if urls := part.get("nonResourceURLs"):
        return held.for_path(verb, urls[0]) is not None
    name = part["resourceNames"][0] if "resourceNames" in part else None
    return held.for_resource(verb, part["apiGroups"][0], part["resources"][0], name) is not None


def _compacted(parts: list[Json]) -> list[Json]:
    """Parts that differ only by verb, as one rule."""
    found: dict[tuple[str, ...], Json] = {}
    for position, part in enumerate(parts):
        if "resources" in part:
            key = (part["apiGroups"][0], part["resources"][0], *part.get("resourceNames", ()))
        else:
            key = ("path", str(position))
        if key in found:
            found[key]["verbs"].extend(part["verbs"])
        else:
            found[key] = {name: list(values) for name, values in part.items()}
    return list(found.values())


_SHOWN: Final = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def _described(rule: Json) -> str:
    shown = []
    for title, key in _SHOWN:
        if rule.get(key):
            quoted = " ".join(quote(item) for item in rule[key])
            shown.append(f"{title}:[{quoted}]")
    return f"{{{', '.join(shown)}}}"


def _only_collected(new: Json, old: Json) -> bool:
    """Whether only what garbage collection writes has changed: finalizers and owner references."""

    def rest(item: Json) -> Json:
        metadata = dict(item.get("metadata") or {})
        for key in ("finalizers", "ownerReferences", "resourceVersion", "managedFields"):
            metadata.pop(key, None)
        return {**item, "metadata": metadata}

    return new != old and rest(new) == rest(old)


def _name(item: Json) -> str:
    return str((item.get("metadata") or {}).get("name") or "")
