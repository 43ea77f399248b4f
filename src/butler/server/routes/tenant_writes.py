"""Making, changing and deleting tenant clusters, each with a look ahead, and getting into one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from litestar import Response, Router, delete, post, put
from litestar.params import JSONBody

from butler.api.objects import Json, Key
from butler.api.tenantcluster import TenantCluster
from butler.kube.client import Client
from butler.kube.errors import ConfigError
from butler.kube.kinds import CLUSTERS, PROVIDERS, WRITE_TIMEOUT
from butler.kube.resource import SECRETS, untyped
from butler.providers.teams import as_placed
from butler.rules.blocked import Blocked
from butler.rules.provider.placement import named_provider
from butler.rules.tenant.versions import next_versions
from butler.server.access.person import Person
from butler.server.actions import manifests
from butler.server.actions.forms import MANIFEST, SCALE, UPGRADE, Places, wrong
from butler.server.actions.impersonation import Deed
from butler.server.actions.preconditions import version_named
from butler.server.actions.previews import objections, of_a_tenant, tenant_preview
from butler.server.cache import background_work
from butler.server.models.common import FieldError, Written
from butler.server.models.tenants import Kubeconfig, Scale, TenantManifest, TenantPreview, Upgrade
from butler.server.parameters import Name, Namespace
from butler.server.problems import RequestRefused, forbidden
from butler.server.routes.write_responses import IfMatch, write, written
from butler.server.services import Services, ThePerson, TheServices
from butler.server.visible_objects import need_tenant
from butler.tenant.clusters import kubeconfig_from

RAW: Final = untyped(CLUSTERS.group, CLUSTERS.version, CLUSTERS.plural, CLUSTERS.kind)
_VERSION: Final = re.compile(r"v[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}")


@post("/tenants", operation_id="createTenant")
async def create_tenant(services: TheServices, person: ThePerson, data: JSONBody[TenantManifest]) -> Written:
    """Make a cluster."""
    key = manifests.key_in(data.manifest)

    async def call(client: Client) -> TenantCluster:
        return await client.create(
            CLUSTERS, data.manifest, key.namespace, field_validation="Strict", timeout=WRITE_TIMEOUT
        )

    made = await write(
        services,
        person,
        Deed("create", CLUSTERS, key, manifests.summary(data.manifest)),
        call,
        places=MANIFEST,
        status=201,
    )
    return written(made, key)


@post("/tenants/preview", operation_id="previewTenant", status_code=200)
async def preview_tenant(services: TheServices, person: ThePerson, data: JSONBody[TenantManifest]) -> TenantPreview:
    """Which addresses a cluster would get, or get too when it is changed; nothing is written."""
    key = manifests.key_in(data.manifest)
    if not await services.permissions.tenants(person, {key.namespace}):
        raise forbidden(f"read TenantClusters in namespace {key.namespace}")
    cluster, errors = manifests.read(data.manifest)
    if cluster is None:
        return tenant_preview(None, errors, ())
    old = services.state.clusters.get(key)
    judged, errors = await _tried(services.impersonator.client(person), data.manifest, key, exists=old is not None)
    hidden = await _hidden(services, person, cluster)
    if judged is None or hidden:
        warnings = [f"which addresses it would get cannot be told: you may not read {hidden}"] if hidden else []
        return tenant_preview(None, errors, warnings)
    placed = await as_placed(services.impersonator.client(person), judged)
    now, exists = services.clock(), old is not None
    found = await background_work.previewed(
        services.state, person, lambda estate: of_a_tenant(estate, placed, now, exists=exists)
    )
    return tenant_preview(found, errors, ())


@put("/tenants/{namespace:str}/{name:str}", operation_id="editTenant")
async def edit_tenant(
    services: TheServices,
    person: ThePerson,
    namespace: Namespace,
    name: Name,
    data: JSONBody[TenantManifest],
    if_match: IfMatch = None,
) -> Written:
    """Change a cluster to what a manifest says. The version is that of If-Match, or the one in the manifest."""
    key = Key(namespace, name)
    if manifests.key_in(data.manifest) != key:
        raise wrong("metadata.name", f"this manifest is about another cluster than {key}: names cannot be changed")
    seen = if_match or str(data.manifest["metadata"].get("resourceVersion") or "")
    fields = ""

    async def call(client: Client) -> TenantCluster:
        version = version_named(seen)
        await need_tenant(services, person, *key)

        async def send(old: TenantCluster) -> TenantCluster:
            nonlocal fields
            current = await client.get(RAW, name, namespace, timeout=WRITE_TIMEOUT)
            # What is compared with has to be what `old` was found to be: else it is fenced by that, and refused.
            current["metadata"] |= {"uid": old.metadata.uid, "resourceVersion": old.metadata.resource_version}
            patch = manifests.change(current, data.manifest)
            fields = manifests.changed_fields(patch)
            return await client.patch(
                CLUSTERS, name, patch, namespace, field_validation="Strict", timeout=WRITE_TIMEOUT
            )

        return await services.impersonator.versions.fenced(services.state.clusters, key, version, send)

    deed = Deed("edit", CLUSTERS, key, about=services.state.clusters.get(key), found=lambda: fields)
    return written(await write(services, person, deed, call, places=MANIFEST), key)


@post("/tenants/{namespace:str}/{name:str}/scale", operation_id="scaleTenant", status_code=200)
async def scale_tenant(
    services: TheServices,
    person: ThePerson,
    namespace: Namespace,
    name: Name,
    data: JSONBody[Scale],
    if_match: IfMatch = None,
) -> Written:
    """Change how many workers a cluster has."""
    before = 0

    def spec(old: TenantCluster) -> Json:
        nonlocal before
        before = old.spec.workers.replicas
        return {"workers": {"replicas": data.workers}}

    return await _change(
        services, person, Key(namespace, name), if_match, spec, SCALE, "scale", lambda: f"{before} -> {data.workers}"
    )


@post("/tenants/{namespace:str}/{name:str}/upgrade", operation_id="upgradeTenant", status_code=200)
async def upgrade_tenant(
    services: TheServices,
    person: ThePerson,
    namespace: Namespace,
    name: Name,
    data: JSONBody[Upgrade],
    if_match: IfMatch = None,
) -> Written:
    """Bring a cluster to another version of Kubernetes: up by one minor version at a time, and never back."""
    if not _VERSION.fullmatch(data.version):
        raise wrong("version", "write a version as in v1.34.1")
    before = ""

    def spec(old: TenantCluster) -> Json:
        nonlocal before
        before = old.spec.kubernetes_version
        seen = old.status.observed_state
        runs = (seen.kubernetes_version if seen else None) or before
        # What the workers were told is not known here, and makes no difference to whether it can be reached.
        outcome = next_versions(data.version, runs, None)
        if isinstance(outcome, Blocked):
            raise wrong("version", outcome.message.removeprefix("spec.kubernetesVersion: "))
        return {"kubernetesVersion": data.version}

    return await _change(
        services,
        person,
        Key(namespace, name),
        if_match,
        spec,
        UPGRADE,
        "upgrade",
        lambda: f"{before} -> {data.version}",
    )


@delete("/tenants/{namespace:str}/{name:str}", operation_id="deleteTenant", status_code=200)
async def delete_tenant(
    services: TheServices, person: ThePerson, namespace: Namespace, name: Name, if_match: IfMatch = None
) -> Written:
    """Delete a cluster with everything on it; its addresses go back last."""
    key = Key(namespace, name)

    async def call(client: Client) -> TenantCluster | None:
        version = version_named(if_match)
        await need_tenant(services, person, *key)

        async def send(old: TenantCluster) -> TenantCluster | None:
            meta = old.metadata
            return await services.impersonator.delete(
                client, CLUSTERS, key, uid=meta.uid, version=meta.resource_version
            )

        return await services.impersonator.versions.fenced(services.state.clusters, key, version, send)

    deed = Deed("delete", CLUSTERS, key, about=services.state.clusters.get(key))
    return written(await write(services, person, deed, call), key)


@post("/tenants/{namespace:str}/{name:str}/kubeconfig", operation_id="getKubeconfig", status_code=200)
async def get_kubeconfig(
    services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Kubeconfig]:
    """The administrator's kubeconfig of a cluster, read with the person's own rights. Who gets one is written down."""
    key = Key(namespace, name)

    async def call(client: Client) -> str:
        cluster = await need_tenant(services, person, *key)
        status = cluster.status
        endpoint = status.control_plane_endpoint
        if status.kubeconfig_secret_ref is None or status.tenant_namespace is None or endpoint is None:
            raise RequestRefused(409, f"{name} has no kubeconfig yet ({status.phase.value}): get it when it is Ready")
        secret = await client.get(
            SECRETS, status.kubeconfig_secret_ref.name, status.tenant_namespace, timeout=WRITE_TIMEOUT
        )
        return _text(secret, endpoint, name)

    deed = Deed("fetch kubeconfig", CLUSTERS, key, about=services.state.clusters.get(key))
    text = await write(services, person, deed, call)
    return Response(
        Kubeconfig(kubeconfig=text, filename=f"{name}.kubeconfig"),
        headers={"Cache-Control": "no-store", "Pragma": "no-cache"},
    )


def _text(secret: Json, endpoint: str, name: str) -> str:
    """The kubeconfig of a Secret, written anew. What would run commands, read files or lead elsewhere is refused, and
    nothing of it is quoted."""
    try:
        return kubeconfig_from(secret, endpoint, name)
    except (ConfigError, ValueError, KeyError, TypeError):
        raise RequestRefused(
            409, f"the kubeconfig of {name} cannot be used: an administrator should look at its Secret"
        ) from None


async def _change(
    services: Services,
    person: Person,
    key: Key,
    if_match: str | None,
    spec: Callable[[TenantCluster], Json],
    places: Places,
    verb: str,
    detail: Callable[[], str],
) -> Written:
    """Change some fields of a cluster that is what the person saw."""

    async def call(client: Client) -> TenantCluster:
        version = version_named(if_match)
        await need_tenant(services, person, *key)

        async def send(old: TenantCluster) -> TenantCluster:
            meta = old.metadata
            if meta.deletion_timestamp is not None:
                raise RequestRefused(409, f"{key.name} is being deleted, and cannot be changed any more")
            fence = {"uid": meta.uid, "resourceVersion": meta.resource_version}
            patch = {"metadata": fence, "spec": spec(old)}
            return await client.patch(
                CLUSTERS, key.name, patch, key.namespace, field_validation="Strict", timeout=WRITE_TIMEOUT
            )

        return await services.impersonator.versions.fenced(services.state.clusters, key, version, send)

    deed = Deed(verb, CLUSTERS, key, about=services.state.clusters.get(key), found=detail)
    return written(await write(services, person, deed, call, places=places), key)


async def _hidden(services: Services, person: Person, cluster: TenantCluster) -> str:
    """What of the estate, that a look ahead is made of, the person may not read."""
    permissions = services.permissions
    asked = (
        ("NetworkPools", permissions.pools),
        ("IPAllocations", permissions.allocations),
        ("ProviderConfigs", permissions.providers),
    )
    hidden = [kind for kind, may in asked if not await may(person)]
    named = named_provider(cluster, services.home)
    if named is not None and not await permissions.may(person, "list", PROVIDERS, named.namespace):
        hidden.append(f"ProviderConfigs in namespace {named.namespace}")
    return ", ".join(hidden)


async def _tried(
    client: Client, manifest: Json, key: Key, *, exists: bool
) -> tuple[TenantCluster | None, list[FieldError]]:
    """The cluster as the API server would store it, or what it has against it; nothing is written."""
    if not exists:
        made = client.create(
            CLUSTERS, manifest, key.namespace, dry_run=True, field_validation="Strict", timeout=WRITE_TIMEOUT
        )
        return await objections(made, MANIFEST)

    async def changed() -> TenantCluster:
        current = await client.get(RAW, key.name, key.namespace, timeout=WRITE_TIMEOUT)
        patch = manifests.change(current, manifest)
        del patch["metadata"]["resourceVersion"]  # what is only tried needs no fence, and the status moves all the time
        return await client.patch(
            CLUSTERS, key.name, patch, key.namespace, dry_run=True, field_validation="Strict", timeout=WRITE_TIMEOUT
        )

    return await objections(changed(), MANIFEST)


router = Router(
    "/",
    route_handlers=[
        create_tenant,
        preview_tenant,
        edit_tenant,
        scale_tenant,
        upgrade_tenant,
        delete_tenant,
        get_kubeconfig,
    ],
    tags=["tenants"],
)
