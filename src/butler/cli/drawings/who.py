"""Whose an address is, told to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.printable import one_line
from butler.cli.toolkit.output import PLAIN, Showing, TableColumn, age
from butler.cli.toolkit.screen import facts, listed, section, sentence
from butler.ipam.addresses import range_text
from butler.reports.address_lookup import NOWHERE
from butler.reports.pool.segments import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from butler.api.objects import Key
    from butler.reports.address_lookup import AddressOwner, AddressPlace, Answer
    from butler.reports.tenant.address_use import AddressUse, AnnouncedAddresses

WORDS = {
    Kind.ALLOCATED: "held",
    Kind.DRAINING: "held, being taken back",
    Kind.GRANTING: "being granted",
    Kind.FREE: "free",
    Kind.RESERVED: "reserved",
    Kind.OUTSIDE: "outside the windows",
}


class LiveAnswer:
    """What tenants said, where they were asked."""

    def __init__(
        self, uses: Sequence[AddressUse], announced: Sequence[AnnouncedAddresses], silent: Mapping[Key, str]
    ) -> None:
        self.uses, self.announced, self.silent = uses, announced, silent


def drawn(answer: Answer, live: LiveAnswer | None, now: datetime) -> str:
    """One address as facts, a range as a table; below it the past, the future, and what runs."""
    one = answer.asked.size == 1 and len(answer.places) == 1
    parts = [_facts(answer, answer.places[0], now) if one else _table(answer, now)]
    if len(answer.pools) > 1 and answer.asked.size == 1:
        names = " and ".join(f"{name} ({cidr})" for name, cidr in answer.pools)
        parts.append(sentence(f"Pools {names} overlap here: `butleradm pool overlaps` tells more."))
    if answer.known_as:
        parts.append(section("Known as", "\n".join(map(sentence, answer.known_as))))
    if live is not None:
        parts.append(section("Right now", _live(live)))
    if answer.wanted:
        rows = [
            [owner.allocation, str(owner.tenant), owner.type, _range(owner, answer), owner.why]
            for owner in answer.wanted
        ]
        parts.append(section("Asked for by", listed(["Allocation", "Tenant", "Type", "Range", "Why not"], rows)))
    if answer.earlier:
        parts.append(section("Earlier", _earlier(answer, now)))
    return "\n\n".join(parts)


def _facts(answer: Answer, place: AddressPlace, now: datetime) -> str:
    owner = place.owners[0] if place.owners else None
    pool = next((f"{name} ({cidr})" for name, cidr in answer.pools if name == place.pool), "")
    pairs: list[tuple[str, object]] = [("Address", answer.text), ("State", state(place))]
    if owner is not None:
        count = f"{owner.addresses.size} address{'' if owner.addresses.size == 1 else 'es'}"
        pairs += [
            ("Tenant", f"{owner.tenant} ({owner.tenant_is.words})"),
            ("Used for", owner.type),
            ("Allocation", f"{owner.allocation}, {_range(owner, answer)} ({count}{_role(owner)})"),
            ("Since", moment(owner.since, now)),
            ("Idle since", moment(owner.idle_since, now)),
            ("Taken back since", moment(owner.draining_since, now)),
        ]
    pairs.append(("Pool", pool))
    if owner is not None and place.pool != owner.pool:
        pairs.append(("From pool", owner.pool))
    if len(place.owners) > 1:
        others = ", ".join(f"{owner.allocation} ({owner.tenant})" for owner in place.owners[1:])
        pairs.append(("Held as well by", f"{others}: `butleradm ipam fsck` tells more"))
    return facts(pairs)


def state(place: AddressPlace) -> str:
    """In a few words."""
    if place.kind == NOWHERE:
        return NOWHERE
    words = WORDS[Kind(place.kind)]
    if place.kind == Kind.RESERVED and place.description:
        return f"{words}: {one_line(place.description)}"
    if place.stranded:
        return f"{words}, though {'its pool does not hand it out' if place.pool else 'no pool has it'}"
    return words


def _table(answer: Answer, now: datetime) -> str:
    def of(cell: Callable[[AddressOwner], object]) -> Callable[[AddressPlace], object]:
        return lambda place: cell(place.owners[0]) if place.owners else ""

    columns: list[TableColumn[AddressPlace]] = [
        TableColumn("Addresses", lambda place: range_text(place.addresses, answer.family)),
        TableColumn("Count", lambda place: place.addresses.size, right=True, spare=True),
        TableColumn("Pool", lambda place: place.pool, spare=True),
        TableColumn("State", state),
        TableColumn("Tenant", of(lambda owner: owner.tenant)),
        TableColumn("Allocation", of(lambda owner: owner.allocation), spare=True),
        TableColumn("Since", of(lambda owner: age(owner.since, now)), spare=True),
    ]
    return Showing(columns, raw=lambda _: None, name=lambda _: "").table(answer.places, PLAIN)


def _live(live: LiveAnswer) -> str:
    lines = [f"{use} on {use.tenant}" for use in live.uses]
    lines += [
        f"{announced.tenant} may announce {announced.entry} (IPAddressPool {announced.pool})"
        for announced in live.announced
    ]
    if not live.uses:
        lines.insert(0, "no Node and no Service has it, as far as tenants were asked")
    lines += [f"{tenant} was not asked: {why}" for tenant, why in sorted(live.silent.items())]
    return "\n".join(map(sentence, lines))


def _earlier(answer: Answer, now: datetime) -> str:
    rows = [
        [
            owner.allocation,
            str(owner.tenant),
            owner.type,
            _range(owner, answer),
            moment(owner.since, now) or "-",
            moment(owner.released_at, now) or owner.phase,
            owner.why,
        ]
        for owner in answer.earlier
    ]
    return listed(["Allocation", "Tenant", "Type", "Range", "From", "Until", "Why"], rows)


def _range(owner: AddressOwner, answer: Answer) -> str:
    return range_text(owner.addresses, answer.family)


def _role(owner: AddressOwner) -> str:
    return f", {owner.role}" if owner.role else ""


def moment(when: datetime | None, now: datetime) -> str:
    """A time for people: `2026-05-17 09:30:00 UTC, 4d ago`."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC, {age(when, now)} ago" if when else ""
