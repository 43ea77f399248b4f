"""What must be true of elastic tenants at every instant, on both sides together; shares no code with Butler.

S4: an address that a Service shows is held by the Service's own tenant, as long as the Service shows it. S5: what
stands in `default-pool` is held by that tenant, as long as it stands there. No address stands in the pools of two
tenants. No Service is moved: the address that it shows stays while it exists, is a load balancer and asks for the same.
And Butler does not go in circles: after it began to take a range back, a tenant grows again only if a user asked for
something in between.

An accusation is made only where the bounds of all moments leave no other explanation (`moments.py`). What a user did
to `default-pool` is the user's own doing: an address that a user wrote there is not held against Butler, nor is a
Service that lost what a user took away.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from elastic.chronicle import (
    ADDRESS_POOL,
    DEFAULT_POOL,
    PROVIDER,
    SERVICE,
    TENANT,
    Chronicle,
    announced,
    granted,
    having,
    is_growth,
    of_kind,
    phase,
    shown,
    tenant_of,
    track,
    wishes,
)
from elastic.moments import Moment, gaps
from ipam.history import ALLOCATION, POOL
from ipam.oracle import text
from ipam.story import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elastic.chronicle import Dated, Hold, Track
    from ipam.history import Json, Revision


def check(chronicle: Chronicle) -> list[Violation]:
    """Every broken rule of safety, over the whole record."""
    return [
        *announced_is_held(chronicle),
        *used_is_held(chronicle),
        *nothing_is_announced_twice(chronicle),
        *no_service_is_moved(chronicle),
        *no_controller_goes_in_circles(chronicle),
    ]


def default_pool(dated: list[Dated]) -> list[Dated]:
    return [item for item in of_kind(dated, ADDRESS_POOL) if item.revision.key == DEFAULT_POOL]


def _held(chronicle: Chronicle, tenant: str) -> Track:
    own = [dated for dated in of_kind(chronicle.management, ALLOCATION) if tenant_of(dated.revision.obj) == tenant]
    return track(having(own, granted))


def _uncovered(hold: Hold, cover: list[Hold]) -> bool:
    return any(hold.period.surely_meets(gap) for gap in gaps([item.period for item in cover]))


def _story(hold: Hold, cover: list[Hold]) -> tuple[Revision, ...]:
    both = [hold, *cover]
    return tuple(found for item in both for found in (item.began, item.ended) if found is not None)


# S5.


def _published(chronicle: Chronicle, tenant: str) -> Track:
    """The addresses that Butler keeps in default-pool: what a user wrote there counts only once it was gone again."""
    foreign: set[int] = set()
    before: set[int] = set()
    own: list[tuple[Dated, set[int]]] = []
    for each, now in having(default_pool(chronicle.tenants[tenant]), announced):
        foreign &= now
        if (tenant, each.revision.version) in chronicle.edits:
            foreign |= now - before
        own.append((each, now - foreign))
        before = now
    return track(own)


def announced_is_held(chronicle: Chronicle) -> Iterator[Violation]:
    for tenant in chronicle.tenants:
        held = _held(chronicle, tenant)
        for address, holds in _published(chronicle, tenant).items():
            for hold in holds:
                if _uncovered(hold, held.get(address, [])):
                    what = f"{text((address, address))} stood in default-pool of {tenant} while the tenant did not hold"
                    yield Violation("S5", f"{what} it", _story(hold, held.get(address, [])))


# S4.


def used_is_held(chronicle: Chronicle) -> Iterator[Violation]:
    """An address of another pool of MetalLB's, which Butler never allocated, is not looked at."""
    known = track(having(of_kind(chronicle.management, ALLOCATION), granted))
    for tenant, dated in chronicle.tenants.items():
        held = _held(chronicle, tenant)
        for address, holds in track(having(of_kind(dated, SERVICE), shown)).items():
            for hold in holds:
                if address in known and _uncovered(hold, held.get(address, [])):
                    others = [item for item in known[address] if hold.period.surely_meets(item.period)]
                    who = ", ".join(other.began.name for other in others) or "no allocation"
                    name = f"{hold.began.namespace}/{hold.began.name} of {tenant}"
                    what = f"{name} has {text((address, address))}, held in between by {who}"
                    yield Violation("S4", what, _story(hold, [*held.get(address, []), *others]))


# Between tenants.


def nothing_is_announced_twice(chronicle: Chronicle) -> Iterator[Violation]:
    tracks = {tenant: _published(chronicle, tenant) for tenant in chronicle.tenants}
    for (one, ones), (two, twos) in combinations(tracks.items(), 2):
        for address in ones.keys() & twos.keys():
            for mine in ones[address]:
                for theirs in twos[address]:
                    if mine.period.surely_meets(theirs.period):
                        what = f"{text((address, address))} stood in default-pool of {one} and of {two}"
                        yield Violation("shared", what, _story(mine, [theirs]))


# Services.


def no_service_is_moved(chronicle: Chronicle) -> Iterator[Violation]:
    for tenant, dated in chronicle.tenants.items():
        yield from _moved(tenant, dated, chronicle.edits)


def _moved(tenant: str, dated: list[Dated], edits: frozenset[tuple[str, int]]) -> Iterator[Violation]:
    given: dict[tuple[str, int], tuple[Revision, tuple[object, ...]]] = {}
    pool: set[int] = set()
    taken_by_user: set[int] = set()
    for item in dated:
        revision = item.revision
        if revision.kind == ADDRESS_POOL and revision.key == DEFAULT_POOL:
            now = announced(revision.after) if revision.after is not None else set()
            if (tenant, revision.version) in edits:
                taken_by_user |= pool - now
            pool = now
        if revision.kind != SERVICE:
            continue
        before = shown(revision.before) if revision.before is not None else set()
        after = shown(revision.after) if revision.after is not None else set()
        for address in before - after:
            begun, wished = given.pop((revision.uid, address), (revision, None))
            if revision.after is None or address in taken_by_user or wished != wishes(revision.after):
                continue
            became = ", ".join(text((one, one)) for one in sorted(after)) or "nothing"
            name = f"{revision.namespace}/{revision.name} of {tenant}"
            what = f"{name} had {text((address, address))} and then {became}, though it asked for the same"
            yield Violation("moved", what, (begun, revision))
        for address in after - before:
            assert revision.after is not None
            given[revision.uid, address] = (revision, wishes(revision.after))
            taken_by_user.discard(address)


# Circles.


def no_controller_goes_in_circles(chronicle: Chronicle) -> Iterator[Violation]:
    for tenant in chronicle.tenants:
        asked = _asked(chronicle, tenant)
        own = [dated for dated in of_kind(chronicle.management, ALLOCATION) if tenant_of(dated.revision.obj) == tenant]
        draining: dict[str, Dated] = {}
        returned: list[tuple[Dated, Revision]] = []
        for dated in own:
            revision = dated.revision
            if revision.after is None or not is_growth(revision.after):
                continue
            if revision.before is None:
                for begun, ended in returned:
                    if not any(moment.maybe_within(begun.moment, dated.moment) for moment in asked):
                        what = f"{revision.name} was made though no Service asked since {ended.name} began to go back"
                        yield Violation("circle", what, (begun.revision, ended, revision))
                        break
            if (revision.after.get("status") or {}).get("drainingSince"):
                draining.setdefault(revision.uid, dated)
            elif phase(revision.after) == "Allocated":
                draining.pop(revision.uid, None)
            if phase(revision.after) == "Released" and phase(revision.before or {}) == "Allocated":
                returned.append((draining.get(revision.uid, dated), revision))


def _asked(chronicle: Chronicle, tenant: str) -> list[Moment]:
    """When a user changed what the tenant wants or what it may have."""
    wished = [
        dated.moment
        for dated in of_kind(chronicle.tenants[tenant], SERVICE)
        if _wish(dated.revision.before) != _wish(dated.revision.after)
    ]
    edited = [
        dated.moment
        for dated in default_pool(chronicle.tenants[tenant])
        if (tenant, dated.revision.version) in chronicle.edits
    ]
    own = _conditions_of(chronicle, tenant)
    allowed = [
        dated.moment
        for dated in chronicle.management
        if (dated.revision.kind, dated.revision.name) in own
        and _spec(dated.revision.before) != _spec(dated.revision.after)
    ]
    return wished + edited + allowed


def _conditions_of(chronicle: Chronicle, tenant: str) -> set[tuple[str, str]]:
    """The objects in whose specs stands what a tenant may have: itself, its provider, and the provider's pools."""
    clusters = [dated.revision for dated in of_kind(chronicle.management, TENANT) if dated.revision.uid == tenant]
    providers = {cluster.obj["spec"]["providerConfigRef"]["name"] for cluster in clusters}
    pools = {
        reference["name"]
        for dated in of_kind(chronicle.management, PROVIDER)
        if dated.revision.name in providers
        for reference in (dated.revision.obj["spec"].get("network") or {}).get("poolRefs") or ()
    }
    found = {(TENANT, cluster.name) for cluster in clusters} | {(PROVIDER, name) for name in providers}
    return found | {(POOL, name) for name in pools}


def _wish(service: Json | None) -> object:
    if service is None:
        return None
    return wishes(service), service["metadata"].get("deletionTimestamp"), _hostnames(service)


def _hostnames(service: Json) -> tuple[str, ...]:
    entries = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return tuple(str(entry["hostname"]) for entry in entries if entry.get("hostname"))


def _spec(obj: Json | None) -> object:
    return None if obj is None else (obj["metadata"]["uid"], obj.get("spec"))
