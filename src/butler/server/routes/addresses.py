"""Whose an address is, and what a text that a user types may mean."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, Router, get
from litestar.params import PathParameter, QueryParameter

from butler.api.objects import Key
from butler.ipam.addresses import BadAddress, Family, Range, parse_network
from butler.reports.address_lookup import Answer, read_asked, who
from butler.reports.estate import Estate
from butler.server.access.person import Person
from butler.server.cache import background_work
from butler.server.models.addresses import AddressAnswer, SearchAnswer
from butler.server.models.common import FieldError
from butler.server.presenters.addresses import (
    allocation_hits,
    best,
    closest,
    pool_hits,
    promised_names,
    provider_hits,
    shown_answer,
    tenant_hits,
)
from butler.server.problems import RequestRefused
from butler.server.responses import respond
from butler.server.services import Services, ThePerson, TheServices
from butler.server.visible_objects import provider_namespaces, seen_providers, seen_tenants, tenant_namespaces

MOST_HITS = 20
MOST_PLACES = 5_000
Asked = Annotated[
    str, PathParameter(description="An address, `start-end`, or a network such as 10.40.1.0/24.", max_length=100)
]
Sought = Annotated[str, QueryParameter(description="An address, a range, or part of a name.", max_length=200)]


@get("/addresses/{address:path}", operation_id="getAddress")
async def get_address(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, address: Asked
) -> Response[AddressAnswer]:
    """Whose an address is, since when, whose it was, and who waits for it."""
    await services.permissions.need_pools(person)
    text = address.removeprefix("/")
    try:
        family, asked = read_asked(text)
    except BadAddress as error:
        raise RequestRefused(422, f"address: {error}", FieldError(field="address", message=str(error))) from None
    return respond(request, shown_answer(await _answer(services, person, family, asked)))


async def _answer(services: Services, person: Person, family: Family, asked: Range) -> Answer:
    """What is known of these addresses; of clusters and providers that the person may not see, nothing."""
    estate = _around(services, family, asked)
    if len(estate.allocations) > MOST_PLACES:
        said = f"that is too much at once: {len(estate.allocations)} allocations lie there; ask for a smaller network"
        raise RequestRefused(422, f"address: {said}", FieldError(field="address", message=said))
    found = await _work(estate, family, asked)
    if not found.known_as:
        return found
    tenants, providers = await tenant_namespaces(services, person), await provider_namespaces(services, person)
    visible = Estate(
        estate.home,
        providers=tuple(provider for provider in estate.providers if provider.metadata.namespace in providers),
        clusters=tuple(cluster for cluster in estate.clusters if cluster.metadata.namespace in tenants),
    )
    known_as = who(visible, family, asked).known_as
    return Answer(
        found.family, found.asked, found.places, found.earlier, found.wanted, found.pools, found.nearest, known_as
    )


async def _work(estate: Estate, family: Family, asked: Range) -> Answer:
    if len(estate.allocations) <= background_work.FEW:
        return who(estate, family, asked)
    return await background_work.once(lambda: who(estate, family, asked))


def _around(services: Services, family: Family, asked: Range) -> Estate:
    """The estate with those allocations alone that can have a say about some addresses."""
    state, pools = services.state, services.state.pools.values()
    keys = set(services.list_items.touching(asked.first, asked.last))
    touched = [pool for pool in pools if _lies_in(pool.spec.cidr, family, asked)]
    keys |= {Key(services.home, name) for name in promised_names(touched)}
    found = (state.allocations.get(key) for key in sorted(keys))
    return Estate(
        services.home,
        tuple(sorted(pools, key=lambda pool: pool.metadata.name)),
        tuple(allocation for allocation in found if allocation is not None),
        tuple(state.providers.values()),
        tuple(state.clusters.values()),
    )


def _lies_in(cidr: str, family: Family, asked: Range) -> bool:
    try:
        other, network = parse_network(cidr)
    except BadAddress:
        return False
    return other is family and network.overlaps(asked)


@get("/search", operation_id="search")
async def search(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, q: Sought
) -> Response[SearchAnswer]:
    """What a text may mean: whose an address is, or what has a name like it. The best twenty come first."""
    sought = q.strip().lower()
    allocations = await services.permissions.allocations(person)
    pools = await services.permissions.pools(person)
    try:
        family, asked = read_asked(sought)
    except BadAddress:
        pass
    else:
        found = await _answer(services, person, family, asked) if pools and allocations else None
        return respond(request, SearchAnswer(address=shown_answer(found) if found else None, hits=[]))
    if not sought:
        return respond(request, SearchAnswer(address=None, hits=[]))
    tenants, _ = await seen_tenants(services, person)
    providers, _ = await seen_providers(services, person)
    hits = [
        *(pool_hits(services.state.pools.values()) if pools else ()),
        *tenant_hits(tenant for tenant in tenants if sought in f"{tenant.namespace}/{tenant.name}".lower()),
        *provider_hits(providers),
        *(allocation_hits(closest(services.list_items.allocations.items(), sought, MOST_HITS)) if allocations else ()),
    ]
    return respond(request, SearchAnswer(address=None, hits=best(hits, sought, MOST_HITS)))


router = Router("/", route_handlers=[get_address, search], tags=["addresses"])
