"""Asking for addresses and giving them back by hand, each with a look ahead."""

from __future__ import annotations

from litestar import Router, delete, post
from litestar.params import JSONBody

from butler.api.codec import to_json
from butler.api.ipallocation import IPAllocation
from butler.api.objects import Json, Key
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import range_text
from butler.kube.client import Client
from butler.kube.errors import KubeError
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, WRITE_TIMEOUT
from butler.rules.allocation.admission import AddressUsers, judge, why_not_deleted
from butler.rules.allocation.held import granted_range
from butler.rules.allocation.owner import deletion_waits, is_insisted, tenant_key
from butler.server.access.person import Person
from butler.server.actions.forms import ALLOCATION, need_names, new_allocation
from butler.server.actions.impersonation import Deed
from butler.server.actions.preconditions import version_named
from butler.server.actions.previews import of_a_request, refused_dry_run
from butler.server.cache import background_work
from butler.server.models.allocations import AllocationCreate, AllocationPreview
from butler.server.models.common import Written
from butler.server.parameters import Name, Namespace
from butler.server.problems import RequestRefused
from butler.server.routes.write_responses import IfMatch, write, written
from butler.server.services import Services, ThePerson, TheServices


@post("/allocations", operation_id="createAllocation")
async def create_allocation(services: TheServices, person: ThePerson, data: JSONBody[AllocationCreate]) -> Written:
    """Ask a pool for addresses."""
    key = Key(services.home, data.name)

    async def call(client: Client) -> IPAllocation:
        need_names(data)
        request = new_allocation(data, services.home, await _cluster(services, person, data))
        return await client.create(ALLOCATIONS, _body(request), timeout=WRITE_TIMEOUT)

    deed = Deed("ask for", ALLOCATIONS, key, _detail(data))
    made = await write(services, person, deed, call, places=ALLOCATION, status=201)
    return written(made, key, await _warnings(services, person, made))


@post("/allocations/preview", operation_id="previewAllocation", status_code=200)
async def preview_allocation(
    services: TheServices, person: ThePerson, data: JSONBody[AllocationCreate]
) -> AllocationPreview:
    """What a request would get now; nothing is written. What Kubernetes would refuse is refused here."""
    await services.permissions.need_pools(person)
    need_names(data)
    request = new_allocation(data, services.home, await _cluster(services, person, data))
    client = services.impersonator.client(person)
    try:
        await client.create(ALLOCATIONS, _body(request), dry_run=True, timeout=WRITE_TIMEOUT)
    except KubeError as error:
        raise refused_dry_run(error, ALLOCATION) from error
    now = services.clock()
    return await background_work.previewed(
        services.state, person, lambda estate: of_a_request(request, estate, now, ALLOCATIONS)
    )


@delete("/allocations/{namespace:str}/{name:str}", operation_id="releaseAllocation", status_code=200)
async def release_allocation(
    services: TheServices, person: ThePerson, namespace: Namespace, name: Name, if_match: IfMatch = None
) -> Written:
    """Give addresses back, or take a request back: only as it was shown, as one that held nothing may hold some now."""
    key = Key(namespace, name)

    async def call(client: Client) -> IPAllocation | None:
        version = version_named(if_match)
        await services.permissions.need_allocations(person)

        async def send(now: IPAllocation) -> IPAllocation | None:
            if deletion_waits(now, services.state.clusters.get(tenant_key(now))) and not is_insisted(now):
                # Admission says so too, where it is on; without it the deletion would begin, and could only wait.
                raise RequestRefused(409, why_not_deleted(now, AddressUsers()))
            meta = now.metadata
            return await services.impersonator.delete(
                client, ALLOCATIONS, key, uid=meta.uid, version=meta.resource_version
            )

        return await services.impersonator.versions.fenced(services.state.allocations, key, version, send)

    known = services.state.allocations.get(key)
    deed = Deed("release", ALLOCATIONS, key, _held(known), known)
    return written(await write(services, person, deed, call, places=ALLOCATION), key)


async def _warnings(services: Services, person: Person, made: IPAllocation) -> tuple[str, ...]:
    """What admission would have the author know, as far as they may see the pool that it speaks of."""
    if not (await services.permissions.pools(person) and await services.permissions.allocations(person)):
        return ()
    name = made.spec.pool_ref.name
    concerned = (allocation for allocation in services.state.concerning(name) if allocation.spec.pool_ref.name == name)
    own = [allocation for allocation in concerned if allocation.metadata.uid != made.metadata.uid]
    return judge(made, services.state.pool(services.home, name), (), own).warnings


async def _cluster(services: Services, person: Person, form: AllocationCreate) -> TenantCluster | None:
    """The TenantCluster that it is for, where there is one and the person may see it."""
    if not await services.permissions.may(person, "list", CLUSTERS, form.tenant_namespace):
        return None
    return services.state.clusters.get(Key(form.tenant_namespace, form.tenant))


def _body(request: IPAllocation) -> Json:
    return {key: value for key, value in to_json(request).items() if key != "status"}


def _detail(form: AllocationCreate) -> str:
    what = f"{form.start}-{form.end}" if form.start or form.end else f"{form.count or 'the usual number of'} addresses"
    return f"{what} of {form.pool} for {form.tenant_namespace}/{form.tenant} ({form.type})"[:400]


def _held(allocation: IPAllocation | None) -> str:
    found = granted_range(allocation) if allocation is not None else None
    return range_text(found[1], found[0]) if found else ""


router = Router("/", route_handlers=[create_allocation, preview_allocation, release_allocation], tags=["allocations"])
