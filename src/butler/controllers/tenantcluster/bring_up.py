"""Bringing a cluster up, and keeping it as it should be.

Every call goes through the same steps and does what is missing; whatever stands in the way ends it, and is what the
status will say. The addresses come first, and before anything else is written: they are what a cluster may have to
wait for, and others wait for them too.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.ipallocation import IPAllocationType
from butler.api.labels import (
    Annotation,
    ConditionType,
    FieldManager,
    Finalizer,
    NetworkReason,
    TenantClusterReason,
)
from butler.api.objects import finalizers_patch, is_being_deleted, key_of, uid_of, with_finalizer
from butler.api.providerconfig import NetworkMode
from butler.api.tenantcluster import OSType
from butler.capi.naming import (
    CLUSTER,
    KINDS,
    KUBEADM_CONFIG_TEMPLATE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    PROVIDERS,
    SECRET,
    STEWARD_CONTROL_PLANE,
    labels,
    workers_name,
)
from butler.capi.objects import objects
from butler.controllers.tenantcluster.build_slots import ANY_MOMENT
from butler.controllers.tenantcluster.credentials import NotAllowed
from butler.controllers.tenantcluster.foreign_objects import NAMESPACE, NotServed, resource_of_kind, unused
from butler.controllers.tenantcluster.half_tenants import is_given_back
from butler.controllers.tenantcluster.node_ranges import NodeRanges
from butler.controllers.tenantcluster.restored import built_as, came_back, note, take_over
from butler.controllers.tenantcluster.talos_workers import worker_secret
from butler.kube.absence import read
from butler.kube.errors import AlreadyExists, ApiError, BadRequest, Conflict, Forbidden, Invalid, NotFound
from butler.kube.kinds import ADDONS, ALLOCATIONS, CLUSTERS, WRITE_TIMEOUT
from butler.rules.blocked import Blocked
from butler.rules.provider.settings import foreign_secret
from butler.rules.tenant import addons, addresses, versions
from butler.rules.tenant.blueprint import Blueprint, Unbuildable
from butler.rules.tenant.node_addresses import Fleet
from butler.rules.tenant.observed import NOTHING_SEEN, ObservedCluster, see
from butler.rules.tenant.provider import access, name_clash, quota, resolve
from butler.rules.tenant.requested_addresses import AddressesRefused
from butler.rules.tenant.status import Facts, endpoint_url, is_established, new_status
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Json, Key
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.ipallocation.release import Releases
    from butler.controllers.tenant_caches import Views
    from butler.controllers.tenantcluster.build_slots import Turnstile
    from butler.controllers.tenantcluster.credentials import Credentials
    from butler.controllers.tenantcluster.foreign_objects import ForeignObjects
    from butler.controllers.tenantcluster.half_tenants import HalfTenants
    from butler.controllers.tenantcluster.status_writer import StatusWriter
    from butler.controllers.tenantcluster.tenant_side import TenantAccess
    from butler.kube.client import Client
    from butler.kube.resource import Resource
    from butler.rules.tenant.addresses import Addresses
    from butler.rules.tenant.blueprint import Versions

SOON: Final = 1.0
"""Seconds after which what was asked for is looked at again, should nothing be heard of it."""
ASKING: Final = 8
"""How many clusters ask for addresses at a time. More would only queue at the API server, and the grants behind them:
with 200 clusters at once, the slowest waits a third longer for its addresses when all ask at the same time."""
CREDENTIALS: Final = "spec.credentialsRef"
NO_CREDENTIALS: Final = "the provider's Secret cannot be used: the conditions of the ProviderConfig say why"
"""To those who may read it: which Secret it is, and what is wrong with it, is not for readers of the cluster."""
TRIES: Final = 3
"""How often in a row a cluster is looked at again that others write too."""
A_WHILE: Final = 5.0
LATER: Final = 15.0
"""Seconds after which something that a user has to change is tried again."""
_KINDS: Final = {(kind.api_version, kind.kind): kind for kind in (*KINDS, SECRET, NAMESPACE)}


@dataclass(frozen=True, slots=True)
class Built:
    """What came of it: the cluster as it was last written, the facts for its status, and when to look again."""

    cluster: TenantCluster
    facts: Facts | None
    """None: there is nothing to say yet that will not be known better in a moment."""
    again: float | None = None


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of making the objects of a cluster, and the cluster as it was last written."""

    cluster: TenantCluster
    blocked: Blocked | None
    parts: tuple[Json, ...] = ()


class NoLongerWanted(Exception):
    """The cluster was deleted, or gave its addresses back, and our view has not heard of it."""


class Building:
    """Brings clusters up. `unpublished` says why a tenant's MetalLB does not have its addresses, if it has not."""

    def __init__(
        self,
        client: Client,
        views: Views,
        live: ForeignObjects,
        credentials: Credentials,
        tenants: TenantAccess,
        unpublished: Callable[[TenantCluster], str],
        home: str,
        clock: Callable[[], datetime],
        turnstile: Turnstile,
        writer: StatusWriter,
        half_tenants: HalfTenants,
        releases: Releases,
    ) -> None:
        self._client = client
        self._node_ranges = NodeRanges(client, views.allocations, releases, clock)
        self._views = views
        self._live = live
        self._credentials = credentials
        self._tenants = tenants
        self._unpublished = unpublished
        self._home = home
        self._clock = clock
        self._turnstile = turnstile
        self._half_tenants = half_tenants
        self._asking = asyncio.Semaphore(ASKING)
        self._writer = writer
        self._unasked: set[str] = set()
        """Clusters, by UID, for which a namespace was made, and the server has not said since that they are there."""

    async def bring_up(self, cluster: TenantCluster) -> Built:
        """Do what is missing."""
        started = cluster.status.tenant_namespace is not None
        if started:
            # Whatever stands in the way below: what was made may not be left behind.
            cluster = await self._claim(cluster)
        unserved, seen = None, NOTHING_SEEN
        try:
            seen = await self._see(cluster) if started else NOTHING_SEEN
        except NotServed as missing:
            unserved = _no_cluster_api(missing)
        self._views.note_endpoint(cluster, seen.endpoint)
        team = self._views.team_of(cluster)
        facts = Facts(seen=seen, present_addons=self._views.addons_of(cluster), team=team)
        provider = resolve(cluster, self._views.all_providers(), self._home, team)
        if isinstance(provider, Blocked):
            return Built(cluster, replace(facts, blocked=provider), LATER)
        if cluster.spec.paused:
            return await self._keep_paused(cluster, provider, facts, made=started and unserved is None)
        stopped = await self._stop(cluster, provider, facts, started=started)
        if stopped is not None:
            return stopped
        cluster = self._views.in_its_team(cluster)
        plan = self._plan(cluster, provider, _fleet(seen, unserved))
        asked = await self._see_to_addresses(cluster, facts, plan, served=unserved is None)
        if asked is not None:
            return asked
        facts = replace(facts, addresses=plan)
        again = None if started else await self._half_tenants.give_back(cluster, plan)
        if again is not None:
            return Built(cluster, replace(facts, blocked=plan.blocked) if plan.blocked else None, again)
        if not _can_go_on(cluster, plan) or unserved is not None:
            if plan.blocked is not None and plan.blocked.reason != NetworkReason.RECONCILING:
                self._turnstile.answered(uid_of(cluster))
            elif unserved is None and self._turnstile.has_just_asked(uid_of(cluster)):
                return Built(cluster, None, SOON)  # one of two blocks is there, and the other comes
            # It may be a long wait, in which the cluster may be deleted: its requests have to go with it.
            cluster = await self._claim(cluster, provider)
            return Built(cluster, replace(facts, blocked=plan.blocked or unserved), LATER)
        going_to = versions.next_versions(
            cluster.spec.kubernetes_version, seen.control_plane.version, seen.workers.version, seen.workers.oldest
        )
        if isinstance(going_to, Blocked):
            return Built(cluster, replace(facts, blocked=going_to), LATER)
        self._turnstile.answered(uid_of(cluster))
        built = await self._build(cluster, provider, facts, going_to)
        if plan.blocked is None or built.facts is None or built.facts.blocked is not None:
            return built
        # It is looked after with the addresses that it has, and says what it waits for.
        return replace(built, facts=replace(built.facts, blocked=plan.blocked))

    async def _stop(
        self, cluster: TenantCluster, provider: ProviderConfig, facts: Facts, *, started: bool
    ) -> Built | None:
        """What to leave it at before any address is asked for, if it is to be left at that."""
        denied = self._denied(cluster, provider, facts.seen, facts.team, started=started)
        if denied is None:
            own = self._views.allocations_for(cluster)
            if await note(self._client, cluster, own):
                return Built(cluster, None, SOON)
            try:
                taken_over = await take_over(self._client, cluster, own)
                return Built(cluster, None, SOON) if taken_over else None
            except AddressesRefused as refused:
                denied = refused.blocked
        if denied.reason == TenantClusterReason.RESTORED:
            # It holds addresses that it had before, which have to go with it.
            cluster = await self._claim(cluster)
        return Built(cluster, replace(facts, blocked=denied), LATER)

    def _denied(
        self, cluster: TenantCluster, provider: ProviderConfig, seen: ObservedCluster, team: str, *, started: bool
    ) -> Blocked | None:
        """Why the cluster may not be here, or not grow."""
        denied = came_back(cluster) or access(cluster, provider, team, started=started)
        if denied is None and not started:
            denied = name_clash(cluster, provider, self._views.namesakes(cluster, provider))
        if denied is None and provider.spec.limits is not None:
            others = self._views.of_the_same_team(cluster, provider)
            denied = quota(cluster, provider, others, seen.workers.desired, team)
        return denied

    async def _build(self, cluster: TenantCluster, provider: ProviderConfig, facts: Facts, going_to: Versions) -> Built:
        """All that comes after the addresses."""
        if wait := self._turnstile.enter(cluster):
            return Built(cluster, None, wait)
        try:
            cluster = await self._claim(cluster, provider, builds=True)
            facts = replace(facts, namespace=tenant_namespace(cluster))
            made = await self._make(cluster, provider, facts, going_to)
        finally:
            self._turnstile.leave()
        cluster = made.cluster
        if made.blocked is not None:
            return Built(cluster, replace(facts, blocked=made.blocked), LATER)
        # Past the build slots: tenants are asked from here on, and one that hangs does not delay others.
        try:
            if facts.addresses.given_up.once_withdrawn:
                await self._node_ranges.release(cluster, facts.addresses.given_up.once_withdrawn)
            facts = replace(facts, seen=await self._see(cluster))
            self._views.note_endpoint(cluster, facts.seen.endpoint)
            built = await self._furnish(cluster, provider, facts, made.parts)
            # Machines that wait for an answer of the tenant: no event reports when it could give one.
            silent = all(part["kind"] != MACHINE_DEPLOYMENT.kind for part in made.parts)
            return replace(built, again=built.again or A_WHILE) if silent else built
        except NotServed as missing:
            return Built(cluster, replace(facts, blocked=_no_cluster_api(missing)), LATER)

    # Addresses.

    async def _see_to_addresses(
        self, cluster: TenantCluster, facts: Facts, plan: Addresses, *, served: bool
    ) -> Built | None:
        """Ask for what is missing, and begin to give back what a person deletes; None: there is nothing to do."""
        if served and await self._node_ranges.take_out_of_use(plan.given_up):
            return Built(cluster, None, ANY_MOMENT)
        if plan.create or plan.drop or plan.given_up.at_once:
            self._turnstile.asked(uid_of(cluster))
            async with self._asking:
                refused = await self._ask(cluster, plan)
            if refused is not None:
                return Built(cluster, replace(facts, addresses=plan, blocked=refused), LATER)
            # Unless the answer is slow to come, a status that says "asked for" would be out of date when written.
            return Built(cluster, None, ANY_MOMENT)
        return None

    def _plan(self, cluster: TenantCluster, provider: ProviderConfig, fleet: Fleet) -> Addresses:
        return addresses.plan(
            cluster,
            provider,
            self._views.pools_by_name(),
            self._views.allocations_for(cluster),
            self._views.is_allocation,
            self._home,
            fleet,
        )

    async def _ask(self, cluster: TenantCluster, plan: Addresses) -> Blocked | None:
        """Ask for what is missing, all at once; why the API server will not even take the request."""
        if plan.given_up.at_once:
            await self._node_ranges.release_last(cluster, plan.given_up.at_once)
        asked = (*map(self._create, plan.create), *map(self._drop, plan.drop))
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is not None:
                return outcome
        return None

    async def _create(self, allocation: IPAllocation) -> Blocked | None:
        try:
            await self._client.create(ALLOCATIONS, allocation, timeout=WRITE_TIMEOUT)
        except AlreadyExists:
            pass  # our view was behind; the next look sees it, ours or not
        except (Invalid, BadRequest, Forbidden) as refusal:
            what = f"IPAllocation {allocation.metadata.name} was refused: {_sentence(refusal)}"
            return Blocked(ConditionType.NETWORK_READY, TenantClusterReason.OBJECT_REFUSED, what)
        return None

    async def _drop(self, allocation: IPAllocation) -> None:
        """Give a refused request up, unless it was granted meanwhile: then its version is another."""
        meta = allocation.metadata
        try:
            await self._client.delete(
                ALLOCATIONS,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                timeout=WRITE_TIMEOUT,
            )
        except (NotFound, Conflict):
            return

    # Objects.

    async def _claim(
        self, cluster: TenantCluster, provider: ProviderConfig | None = None, *, builds: bool = False
    ) -> TenantCluster:
        """See to it that the cluster does not go without us, nor to another provider; and, before it is built, that it
        tells where, should it come back from a backup.

        Where it goes is written down if it named no provider: the default is for new clusters, and the day that it
        changes must not be the day on which all the others move.
        """
        finalizers = with_finalizer(cluster, Finalizer.TENANT_CLUSTER)
        is_fixed = cluster.spec.provider_config_ref is not None or provider is None
        is_noted = not builds or Annotation.BUILT_AS in cluster.metadata.annotations
        if finalizers is None and is_fixed and is_noted:
            return cluster
        patch = finalizers_patch(cluster, finalizers or cluster.metadata.finalizers)
        if not is_noted:
            patch["metadata"]["annotations"] = {Annotation.BUILT_AS.value: built_as(cluster)}
        if provider is not None and not is_fixed:
            on = key_of(provider)
            patch["spec"] = {"providerConfigRef": {"name": on.name, "namespace": on.namespace}}
        key = key_of(cluster)
        written = await self._client.patch(CLUSTERS, key.name, patch, key.namespace, timeout=WRITE_TIMEOUT)
        return self._views.in_its_team(written)

    async def _settle(self, cluster: TenantCluster, facts: Facts) -> TenantCluster:
        """Make the namespace, and having made it ask the server whether the cluster is still wanted.

        A process may sleep through a deletion at any point, and would then make machines on addresses that are
        others' by now. In this order it cannot: who deletes the cluster after we asked finds the namespace, and
        addresses are given back only when that is gone, and nothing can be made in it any more. Asked before, the
        deletion could find nothing and be over by the time that we write.
        """
        uid, namespace = uid_of(cluster), tenant_namespace(cluster)
        before = await self._live.one(NAMESPACE, "", namespace)
        if before is None:
            self._unasked.add(uid)
        made = await self._live.apply(NAMESPACE, _namespace(cluster))
        if made is None and uid not in self._unasked and cluster.status.tenant_namespace is not None:
            return cluster
        found = await self._begin(cluster, facts)
        self._unasked.discard(uid)
        if found is not None:
            return self._views.in_its_team(found)
        if made is not None and (before is None or uid_of(before) != uid_of(made)):
            await self._delete(resource_of_kind(NAMESPACE), key_of(made), uid_of(made))
        raise NoLongerWanted

    async def _begin(self, cluster: TenantCluster, facts: Facts) -> TenantCluster | None:
        """Say in the status that the cluster is built; the cluster as the server has it then, None: it is not wanted.

        The write is valid only for a cluster of which no block is given back, see `half_tenants`. It is also what asks
        whether the cluster is still there. The namespace stays where a block is given back: by now another process
        may build in it with other blocks.
        """
        found: TenantCluster | None = cluster
        for fresh in (False, *(True,) * TRIES):
            if fresh:
                found = await read(self._client, CLUSTERS, key_of(cluster))
            if found is None or not _is_same(found, cluster):
                return None
            if await is_given_back(self._client, found, facts.addresses.blocks):
                raise NoLongerWanted
            if fresh and found.status.tenant_namespace is not None:
                return found
            with contextlib.suppress(Conflict):
                written = await self._writer.write(found, new_status(found, facts, self._clock()))
                if written.cluster is not None:
                    return written.cluster if _is_same(written.cluster, cluster) else None
        raise NoLongerWanted

    async def _unapplied(self, parts: Iterable[Json]) -> list[Json]:
        """What there is to write, as far as our view has it."""
        return [
            part for part in parts if not await self._live.is_applied(_KINDS[part["apiVersion"], part["kind"]], part)
        ]

    async def _make(self, cluster: TenantCluster, provider: ProviderConfig, facts: Facts, going_to: Versions) -> _Made:
        """Apply all objects of the cluster."""
        namespace = tenant_namespace(cluster)
        if foreign_secret(provider.spec, provider.metadata.namespace, self._home) is not None:
            return _Made(cluster, _failed(TenantClusterReason.PROVIDER_NOT_READY, NO_CREDENTIALS))
        try:
            secret, credentials = await self._credentials.of(provider)
        except (NotFound, NotAllowed):
            return _Made(cluster, _failed(TenantClusterReason.PROVIDER_NOT_READY, NO_CREDENTIALS))
        blueprint = Blueprint(
            cluster=_within_addresses(cluster, facts.addresses, facts.seen.workers.desired),
            provider=provider,
            namespace=namespace,
            versions=going_to,
            credentials=credentials,
            credentials_secret=(secret.namespace, secret.name),
            nodes=facts.addresses.nodes,
            endpoint=facts.seen.endpoint,
        )
        try:
            parts = await self._parts(blueprint)
        except Unbuildable as error:
            if error.field.startswith(CREDENTIALS):
                return _Made(cluster, _failed(TenantClusterReason.PROVIDER_NOT_READY, NO_CREDENTIALS))
            return _Made(cluster, _failed(TenantClusterReason.INVALID_CONFIGURATION, str(error)))
        try:
            # First, because the end of a cluster is safe to call when it has no namespace, and where it has one, only
            # when Cluster API says that nothing is left in it.
            for kind in dict.fromkeys((*(_KINDS[part["apiVersion"], part["kind"]] for part in parts), MACHINE)):
                await self._live.view(kind)
            cluster = await self._settle(cluster, facts)
            unapplied = await self._unapplied(parts)
            if unapplied and not await self._node_ranges.are_as_seen(facts.addresses):
                raise NoLongerWanted
        except NotServed as missing:
            return _Made(cluster, _no_cluster_api(missing))
        return _Made(cluster, await self._apply(namespace, unapplied), parts)

    async def _parts(self, blueprint: Blueprint) -> tuple[Json, ...]:
        if blueprint.cluster.spec.workers.machine_template.os.type is not OSType.TALOS:
            return objects(blueprint)
        secret = await worker_secret(self._client, self._tenants, blueprint, self._clock())
        if secret is None:
            return objects(blueprint)
        return (secret, *objects(replace(blueprint, bootstrap_secret=secret["metadata"]["name"])))

    async def _apply(self, namespace: str, parts: Iterable[Json]) -> Blocked | None:
        for part in parts:
            try:
                await self._live.apply(_KINDS[part["apiVersion"], part["kind"]], part)
            except NotServed as missing:
                return _no_cluster_api(missing)
            except NotFound as refusal:
                place, what = part["metadata"].get("namespace"), f"{part['kind']} {part['metadata']['name']}"
                if place == namespace:
                    raise  # it went while we worked in it, and is made again in a moment
                return _failed(
                    TenantClusterReason.CLUSTER_API_MISSING,
                    f"{what} belongs into namespace {place}, where the infrastructure provider is installed by default:"
                    f" {_sentence(refusal)}",
                )
            except (Invalid, BadRequest, Forbidden) as refusal:
                what = f"{part['kind']} {part['metadata']['name']}"
                return _failed(TenantClusterReason.OBJECT_REFUSED, f"{what} was refused: {_sentence(refusal)}")
        return None

    async def _keep_paused(
        self, cluster: TenantCluster, provider: ProviderConfig, facts: Facts, *, made: bool
    ) -> Built:
        """Tell Cluster API to keep its hands off as well; it is told to go on when all is applied again."""
        fleet = Fleet(facts.seen.workers.addresses, built=True)
        facts = replace(
            facts, addresses=self._plan(cluster, provider, fleet), namespace=cluster.status.tenant_namespace
        )
        found = await self._live.one(CLUSTER, tenant_namespace(cluster), cluster.metadata.name) if made else None
        if found is not None and not found.get("spec", {}).get("paused"):
            await self._client.patch(
                resource_of_kind(CLUSTER),
                cluster.metadata.name,
                {"spec": {"paused": True}},
                tenant_namespace(cluster),
                field_manager=FieldManager.TENANTS,
                timeout=WRITE_TIMEOUT,
            )
        return Built(cluster, facts)

    async def _see(self, cluster: TenantCluster) -> ObservedCluster:
        namespace, name = tenant_namespace(cluster), cluster.metadata.name
        return see(
            await self._live.one(CLUSTER, namespace, name),
            await self._live.one(STEWARD_CONTROL_PLANE, namespace, name),
            await self._live.one(MACHINE_DEPLOYMENT, namespace, workers_name(cluster)),
            await self._live.all_in(MACHINE, namespace),
        )

    # What comes when the control plane is there.

    async def _furnish(
        self, cluster: TenantCluster, provider: ProviderConfig, facts: Facts, parts: tuple[Json, ...]
    ) -> Built:
        """Kubeconfig, addons and load balancers; and templates that are no longer used go."""
        if facts.seen.workers.settled:
            await self._tidy(cluster, provider, parts)
        endpoint = facts.seen.endpoint
        url = endpoint_url(endpoint) if endpoint else cluster.status.control_plane_endpoint
        secret = await self._tenants.kubeconfig(cluster, url)
        facts = replace(facts, kubeconfig_secret=secret)
        if secret is None or not facts.seen.control_plane.ready:
            return Built(cluster, facts)
        balanced = provider.spec.network.mode is NetworkMode.IPAM
        wanted = addons.wanted_addons(cluster, load_balancers=balanced)
        await self._want(cluster, wanted)
        present = self._views.addons_of(cluster)
        progress = addons.progress(wanted, present) if wanted else None
        facts = replace(facts, present_addons=present, addon_progress=progress)
        if balanced and progress is not None and addons.METALLB in progress.installed:
            facts = replace(facts, load_balancers_published=self._unpublished(cluster))
        return Built(cluster, facts)

    async def _want(self, cluster: TenantCluster, wanted: tuple[addons.Wanted, ...]) -> None:
        for wish in wanted:
            addon = addons.tenant_addon(cluster, wish)
            found = self._views.addons.get(key_of(addon))
            if found is not None and (found.spec == addon.spec or not addons.belongs_to(found, cluster)):
                continue
            written = await self._client.apply(
                ADDONS, addon, force=True, field_manager=FieldManager.TENANTS, timeout=WRITE_TIMEOUT
            )
            self._views.addons.wrote(written)

    async def _tidy(self, cluster: TenantCluster, provider: ProviderConfig, parts: tuple[Json, ...]) -> None:
        """Delete templates that no machine was made from and none will be."""
        namespace = tenant_namespace(cluster)
        kinds = (PROVIDERS[provider.spec.provider].machine_template, KUBEADM_CONFIG_TEMPLATE)
        old = {kind: await self._live.all_in(kind, namespace) for kind in kinds}
        current = {(part["kind"], part["metadata"]["name"]) for part in parts}
        if all(not unused(found, current) for found in old.values()):
            return
        for machines in await self._live.all_in(MACHINE_SET, namespace):
            if machines.get("spec", {}).get("replicas"):
                made_from = machines["spec"]["template"]["spec"]
                for reference in (made_from.get("infrastructureRef"), made_from.get("bootstrap", {}).get("configRef")):
                    current |= {(reference["kind"], reference["name"])} if reference else set()
        for kind, found in old.items():
            for obj in unused(found, current):
                if not is_being_deleted(obj):
                    await self._delete(resource_of_kind(kind), key_of(obj), uid_of(obj))

    async def _delete(self, resource: Resource[Json], key: Key, uid: str) -> None:
        try:
            await self._client.delete(resource, key.name, key.namespace, uid=uid, timeout=WRITE_TIMEOUT)
        except (NotFound, Conflict):
            return  # gone, or another by now


def _can_go_on(cluster: TenantCluster, plan: Addresses) -> bool:
    """Whether a cluster can be built, or looked after, with the addresses that it has.

    What it waits for may be the name of a range that goes, and that is not before the objects no longer name it.
    """
    if plan.blocked is None:
        return True
    withdraws = cluster.status.tenant_namespace is not None and bool(plan.given_up.once_withdrawn)
    return plan.blocked.waits and (is_established(cluster) or withdraws)


def _fleet(seen: ObservedCluster, unserved: Blocked | None) -> Fleet:
    """The machines; where Cluster API cannot be asked there may be any."""
    return Fleet(seen.workers.addresses, built=seen.exists or unserved is not None, desired=seen.workers.desired)


def _is_same(found: TenantCluster, cluster: TenantCluster) -> bool:
    """Whether it is this very cluster, and stays."""
    return uid_of(found) == uid_of(cluster) and not is_being_deleted(found)


def _namespace(cluster: TenantCluster) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": tenant_namespace(cluster), "labels": labels(cluster)},
    }


def _within_addresses(cluster: TenantCluster, held: Addresses, desired: int) -> TenantCluster:
    """The cluster with no more machines than it has addresses for, and none more on addresses that go."""
    workers, most = cluster.spec.workers, cluster.spec.workers.replicas
    if held.nodes is not None:
        most = min(most, held.nodes.size)
    if any(block.spec.type is IPAllocationType.NODES and block.status.draining_since for block in held.blocks):
        most = min(most, desired)
    if most == workers.replicas:
        return cluster
    fewer = msgspec.structs.replace(workers, replicas=most)
    return msgspec.structs.replace(cluster, spec=msgspec.structs.replace(cluster.spec, workers=fewer))


def _no_cluster_api(missing: NotServed) -> Blocked:
    return Blocked(
        ConditionType.INFRASTRUCTURE_READY,
        TenantClusterReason.CLUSTER_API_MISSING,
        f"{missing}: install Cluster API, Steward and the infrastructure provider on the management cluster",
    )


def _failed(reason: str, message: str) -> Blocked:
    return Blocked(ConditionType.INFRASTRUCTURE_READY, reason, message)


def _sentence(refusal: ApiError) -> str:
    return str(refusal)[:500]
