"""Making, changing and deleting pools, each with a look ahead."""

from __future__ import annotations

import msgspec
from litestar import Router, delete, patch, post
from litestar.params import JSONBody

from butler.api.codec import merge_patch, to_json
from butler.api.networkpool import NetworkPool
from butler.api.objects import Json, Key
from butler.kube.client import Client
from butler.kube.kinds import POOLS, WRITE_TIMEOUT
from butler.rules.pool.admission import judge
from butler.server.actions.forms import POOL, edited_pool, new_pool
from butler.server.actions.impersonation import Deed
from butler.server.actions.preconditions import version_named
from butler.server.actions.previews import and_also, objections, of_a_pool
from butler.server.cache import background_work
from butler.server.models.common import Written
from butler.server.models.pools import PoolCreate, PoolEdit, PoolPreview
from butler.server.parameters import Name, Namespace
from butler.server.routes.write_responses import IfMatch, write, written
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool

LONGEST_DETAIL = 400


@post("/pools", operation_id="createPool")
async def create_pool(services: TheServices, person: ThePerson, data: JSONBody[PoolCreate]) -> Written:
    """Make a pool."""
    key = Key(services.home, data.name)
    warnings: tuple[str, ...] = ()

    async def call(client: Client) -> NetworkPool:
        nonlocal warnings
        pool = new_pool(data, services.home)
        made = await client.create(POOLS, _body(pool), timeout=WRITE_TIMEOUT)
        warnings = judge(None, made, services.state.pools.values(), services.state.allocations.values()).warnings
        return made

    detail = f"{data.cidr[:40]} with {len(data.windows)} windows and {len(data.reserved)} reserved blocks"
    made = await write(services, person, Deed("create", POOLS, key, detail), call, places=POOL, status=201)
    return written(made, key, warnings)


@post("/pools/preview", operation_id="previewNewPool", status_code=200)
async def preview_new_pool(services: TheServices, person: ThePerson, data: JSONBody[PoolCreate]) -> PoolPreview:
    """What a new pool would be; nothing is written."""
    await services.permissions.need_pools(person)
    pool, now = new_pool(data, services.home), services.clock()
    shown = await background_work.previewed(
        services.state, person, lambda estate: of_a_pool(None, pool, estate, now, POOLS)
    )
    dry_run = services.impersonator.client(person).create(POOLS, _body(pool), dry_run=True, timeout=WRITE_TIMEOUT)
    return and_also(shown, (await objections(dry_run, POOL))[1])


@patch("/pools/{namespace:str}/{name:str}", operation_id="editPool")
async def edit_pool(
    services: TheServices,
    person: ThePerson,
    namespace: Namespace,
    name: Name,
    data: JSONBody[PoolEdit],
    if_match: IfMatch = None,
) -> Written:
    """Change a pool; what is not mentioned stays as it is."""
    key = Key(namespace, name)
    warnings: tuple[str, ...] = ()

    async def call(client: Client) -> NetworkPool:
        version = version_named(if_match)
        await services.permissions.need_pools(person)

        async def send(old: NetworkPool) -> NetworkPool:
            nonlocal warnings
            new = edited_pool(old, data)
            judged = await background_work.previewed(
                services.state, person, lambda estate: judge(old, new, estate.pools, estate.allocations)
            )
            warnings = judged.warnings
            return await client.patch(POOLS, name, _fenced(old, new), namespace, timeout=WRITE_TIMEOUT)

        return await services.impersonator.versions.fenced(services.state.pools, key, version, send)

    verb = "edit" if data.grow_by is None else "grow"
    deed = Deed(verb, POOLS, key, _detail(data), services.state.pool(namespace, name))
    return written(await write(services, person, deed, call, places=POOL), key, warnings)


@post("/pools/{namespace:str}/{name:str}/preview", operation_id="previewPoolEdit", status_code=200)
async def preview_edit(
    services: TheServices, person: ThePerson, namespace: Namespace, name: Name, data: JSONBody[PoolEdit]
) -> PoolPreview:
    """What an edit would do; nothing is written."""
    old = await need_pool(services, person, namespace, name)
    new, now = edited_pool(old, data), services.clock()
    shown = await background_work.previewed(
        services.state, person, lambda estate: of_a_pool(old, new, estate, now, POOLS)
    )
    change: Json = {"metadata": {"uid": old.metadata.uid}, "spec": merge_patch(old.spec, new.spec)}
    dry_run = services.impersonator.client(person).patch(
        POOLS, name, change, namespace, dry_run=True, timeout=WRITE_TIMEOUT
    )
    return and_also(shown, (await objections(dry_run, POOL))[1])


@delete("/pools/{namespace:str}/{name:str}", operation_id="deletePool", status_code=200)
async def delete_pool(
    services: TheServices, person: ThePerson, namespace: Namespace, name: Name, if_match: IfMatch = None
) -> Written:
    """Delete a pool of which no tenant has addresses."""
    key = Key(namespace, name)

    async def call(client: Client) -> NetworkPool | None:
        version = version_named(if_match)
        await services.permissions.need_pools(person)

        async def send(old: NetworkPool) -> NetworkPool | None:
            meta = old.metadata
            return await services.impersonator.delete(client, POOLS, key, uid=meta.uid, version=meta.resource_version)

        return await services.impersonator.versions.fenced(services.state.pools, key, version, send)

    deed = Deed("delete", POOLS, key, about=services.state.pool(namespace, name))
    return written(await write(services, person, deed, call, places=POOL), key)


def _body(pool: NetworkPool) -> Json:
    meta = {"name": pool.metadata.name, "namespace": pool.metadata.namespace}
    return {"metadata": meta, "spec": to_json(pool.spec)}


def _fenced(old: NetworkPool, new: NetworkPool) -> Json:
    """The change, valid for exactly what was read."""
    version = {"uid": old.metadata.uid, "resourceVersion": old.metadata.resource_version}
    return {"metadata": version, "spec": merge_patch(old.spec, new.spec)}


def _detail(form: PoolEdit) -> str:
    """What was asked for, for the record."""
    if form.grow_by is not None:
        return f"by {form.grow_by}"
    mentioned = {key: value for key, value in msgspec.to_builtins(form).items() if value is not None}
    said = msgspec.json.encode(mentioned).decode()
    return said if len(said) <= LONGEST_DETAIL else said[: LONGEST_DETAIL - 1] + "…"


router = Router(
    "/", route_handlers=[create_pool, preview_new_pool, edit_pool, preview_edit, delete_pool], tags=["pools"]
)
