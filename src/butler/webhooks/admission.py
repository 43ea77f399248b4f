"""Admission: reads what the rules need, asks them, and answers. `service` makes it a part of the controller process.

How old may be what we read? An update or deletion of a pool is judged with the stored pool that the API server sends
along, and its status says how far one must have seen the allocations (`allocationsSeen`): everything granted up to
then stands in the allocations, everything after it in the pool's intents. So the process's own cache is good as soon
as it has come that far; where it lags, the allocations are listed afresh. A grant that is made after the question
was asked changes the pool, and the API server asks again with the newer one. Other pools have no such mark. Where a
network is new or changes, the cache says which of them may overlap it, and so does what this process admitted a moment
ago (`admitted`); each of those is read afresh. Two pools that are created at the same moment, or a moment apart through
two replicas, may both pass: the controllers see to it that only one of them hands out anything (`networkpool.claims`).

Whether an allocation's owner lives is always read afresh, too.

What cannot be read is refused (fail closed), with the advice to try again. New allocations are the exception: about
them we only warn, and a warning is not worth a failed write.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from butler.api import GROUP, HOME_NAMESPACE
from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import Annotation
from butler.api.networkpool import NetworkPool
from butler.api.objects import Key, key_of
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.kube.errors import KubeError, NotFound
from butler.kube.resource import resource_of
from butler.providers.teams import NAMESPACE_HEADS, Teams, team_of_labels
from butler.rules.admission_verdict import AdmissionVerdict
from butler.rules.allocation import admission as ipallocation
from butler.rules.allocation.held import held_addresses, pool_key
from butler.rules.allocation.owner import is_insisted, owner_lives, tenant_key
from butler.rules.pool import admission as networkpool
from butler.rules.provider import admission as providerconfig
from butler.rules.provider.placement import placement
from butler.rules.tenant import admission as tenantcluster
from butler.webhooks import review
from butler.webhooks.allocation_users import users_of
from butler.webhooks.recently_admitted import AdmittedPools
from butler.webhooks.rights import missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from butler.ipam.addresses import Range
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.author_rights import Right
    from butler.webhooks.review import AdmissionAnswer, Question

Json = dict[str, Any]
T = TypeVar("T", NetworkPool, IPAllocation, ProviderConfig, TenantCluster)
log = logging.getLogger(__name__)

POOLS: Final = resource_of(NetworkPool)
ALLOCATIONS: Final = resource_of(IPAllocation)
PROVIDERS: Final = resource_of(ProviderConfig)
CLUSTERS: Final = resource_of(TenantCluster)
RELEASE_FORCED: Final = "ReleaseForced"
CACHE_PATIENCE: Final = 1.0
READ_PATIENCE: Final = 2.5
BY_POOL: Final = "admission: allocations by pool"
HELD: Final = "admission: allocations by address"
NETWORKS: Final = "admission: pools by network"
MOST_READ: Final = 8
"""How many pools are read one by one; where more may be in the way, one list is cheaper."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    """What settles most updates, readable whatever else is in the object."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: Any = None


class AdmissionWebhook:
    """Decides questions about pools, allocations, providers and clusters with what one process sees."""

    def __init__(
        self,
        client: Client,
        pools: Cache[NetworkPool],
        allocations: Cache[IPAllocation],
        *,
        providers: Cache[ProviderConfig] | None = None,
        teams: Teams | None = None,
        namespace: str = "",
        home: str = HOME_NAMESPACE,
        events: EventRecorder | None = None,
        cache_patience: float = CACHE_PATIENCE,
        read_patience: float = READ_PATIENCE,
    ) -> None:
        self._client = client
        self._events = events
        self._pools = pools
        self._allocations = allocations
        self._providers = providers
        self._teams = teams
        self._namespace = namespace
        self._home = home
        self._cache_patience = cache_patience
        self._read_patience = read_patience
        self._admitted = AdmittedPools()
        allocations.index(BY_POOL, lambda allocation: [pool_key(allocation)])
        allocations.index_ranges(HELD, _held_ranges)
        pools.index_ranges(NETWORKS, lambda pool: [(NETWORKS, network) for network in networkpool.networks_of(pool)])

    async def decide(self, question: Question) -> AdmissionAnswer:
        """The answer to a question; never raises for what a question can hold."""
        if question.resource.group == "" and question.resource.resource == "namespaces":
            return await self._about_namespace(question)
        decide = {
            POOLS.plural: self._about_pool,
            ALLOCATIONS.plural: self._about_allocation,
            PROVIDERS.plural: self._about_provider,
            CLUSTERS.plural: self._about_cluster,
        }.get(question.resource.resource)
        if decide is None or question.resource.group != GROUP:
            return review.malformed(
                question,
                f"Butler was asked about {question.resource}, which it has no rules for; its webhook"
                " configuration is wrong, and the next start of Butler puts it right",
            )
        if question.sub_resource:
            return review.allow()
        try:
            return await decide(question)
        except _Unreadable as error:
            return review.malformed(question, str(error))
        except KubeError as error:
            return review.undecided(question, str(error))

    # NetworkPools.

    async def _about_pool(self, question: Question) -> AdmissionAnswer:
        if question.operation == "DELETE":
            return await self._about_deletion(question)
        if question.operation not in ("CREATE", "UPDATE"):
            return review.allow()
        new_text = _text(question, "object")
        old = None
        if question.operation == "UPDATE":
            old_text = _text(question, "oldObject")
            before, after = _head(old_text, "oldObject"), _head(new_text, "object")
            if after.metadata.deletion_timestamp is not None or before.spec == after.spec:
                return review.allow()
            old = _decoded(NetworkPool, old_text, "oldObject")
        new = _decoded(NetworkPool, new_text, "object")
        takes_more = old is None or old.spec.cidr != new.spec.cidr
        others = await self._rivals_of(new) if takes_more else []
        verdict = networkpool.judge(old, new, others, [] if old is None else await self._allocations_for(old))
        if verdict.problems:
            return review.refuse(question, verdict.problems, msgspec.json.decode(new_text), verdict.warnings)
        if takes_more:
            self._admitted.add(key_of(new), networkpool.networks_of(new))
        return review.allow(verdict.warnings)

    async def _rivals_of(self, new: NetworkPool) -> list[NetworkPool]:
        """The pools that have, or want, any of a pool's addresses, as they are now.

        The cache says which they may be, together with what was admitted a moment ago and the cache may not show yet;
        each of these is read. So a question costs no more because there are many pools.
        """
        cache = self._pools
        networks = networkpool.networks_of(new)
        if cache.has_synced and not cache.unreadable:
            self._admitted.forget_shown(cache.get)
            known = [key_of(pool) for network in networks for pool in cache.touching(NETWORKS, NETWORKS, network)]
            recent = [key for network in networks for key in self._admitted.touching(network)]
            keys = {key for key in (*known, *recent) if key != key_of(new)}
            if len(keys) <= MOST_READ:
                found = await asyncio.gather(*(self._pool(key) for key in sorted(keys)))
                return [pool for pool in found if pool is not None]
        return (await self._client.list(POOLS, self._namespace, timeout=self._read_patience)).items

    async def _pool(self, key: Key) -> NetworkPool | None:
        try:
            return await self._client.get(POOLS, key.name, key.namespace, timeout=self._read_patience)
        except NotFound:
            return None

    async def _about_deletion(self, question: Question) -> AdmissionAnswer:
        text = _text(question, "oldObject")
        if _head(text, "oldObject").metadata.deletion_timestamp is not None:
            return review.allow()
        pool = _decoded(NetworkPool, text, "oldObject")
        why = networkpool.why_not_deleted(pool, await self._allocations_for(pool))
        return review.forbid(question, why) if why else review.allow()

    async def _allocations_for(self, pool: NetworkPool) -> list[IPAllocation]:
        """The allocations of a pool, as new as its status demands."""
        namespace, cache = pool.metadata.namespace, self._allocations
        if cache.namespace in ("", namespace) and cache.has_synced and not cache.unreadable:
            seen = pool.status.allocations_seen
            if not seen or await cache.reached(seen, self._cache_patience):
                return cache.by(BY_POOL, key_of(pool))
        return (await self._client.list(ALLOCATIONS, namespace, timeout=self._read_patience)).items

    # IPAllocations.

    async def _about_allocation(self, question: Question) -> AdmissionAnswer:
        if question.operation == "DELETE":
            return await self._about_release(question)
        if question.operation != "CREATE":
            return review.allow()
        text = _text(question, "object")
        new = _decoded(IPAllocation, text, "object")
        key = Key(new.metadata.namespace or question.namespace, new.spec.pool_ref.name)
        pool = self._pools.get(key)
        if pool is None:
            try:
                # Most likely it was created a moment ago; the cache alone would make us cry wolf.
                pool = await self._client.get(POOLS, key.name, key.namespace, timeout=self._read_patience)
            except NotFound:
                pool = None
            except (KubeError, ValueError):
                return review.allow()
        elsewhere = (item.metadata.namespace for item in self._pools.values() if item.metadata.name == key.name)
        verdict = ipallocation.judge(new, pool, elsewhere, self._in_the_way_of(new, key))
        if verdict.problems:
            return review.refuse(question, verdict.problems, msgspec.json.decode(text), verdict.warnings)
        return review.allow(verdict.warnings)

    def _in_the_way_of(self, new: IPAllocation, pool: Key) -> Iterator[IPAllocation]:
        """The allocations that could keep a request from being met; looked up only when they are asked for."""
        addresses = ipallocation.in_the_way_of(new)
        if addresses is None:
            yield from self._allocations.by(BY_POOL, pool)
        else:
            yield from self._allocations.touching(HELD, pool, addresses)

    async def _about_release(self, question: Question) -> AdmissionAnswer:
        """A person deletes an allocation: not while its owner lives and it holds addresses, unless he insists."""
        text = _text(question, "oldObject")
        meta = _head(text, "oldObject").metadata
        if meta.deletion_timestamp is not None:
            return review.allow()
        try:
            leaving = _decoded(IPAllocation, text, "oldObject")
        except _Unreadable:
            if meta.annotations.get(Annotation.FORCE_DELETE) == meta.name:
                return review.allow()  # what it holds is unknown, and there has to be a way to delete it
            raise
        if leaving.status.phase is not IPAllocationPhase.ALLOCATED:
            return review.allow()
        named = tenant_key(leaving)
        try:
            tenant = await self._client.get(CLUSTERS, named.name, named.namespace, timeout=self._read_patience)
        except NotFound:
            return review.allow()
        if not owner_lives(leaving, tenant):
            return review.allow()
        if is_insisted(leaving):
            self._audit(question, leaving)
            return review.allow()
        used = await users_of(self._client, leaving, tenant, self._read_patience)
        return review.forbid(question, ipallocation.why_not_deleted(leaving, used))

    def _audit(self, question: Question, leaving: IPAllocation) -> None:
        """Tell who insists: the object itself will not be there to be asked."""
        if question.dry_run:
            return
        who, meta = question.user_info.username or "an unknown user", leaving.metadata
        message = (
            f"{who} deletes IPAllocation {meta.name} ({leaving.status.start_address}-{leaving.status.end_address}) of"
            f" TenantCluster {tenant_key(leaving)}, which exists, and insists on it by annotation"
            f" {Annotation.FORCE_DELETE}"
        )
        log.warning("%s (namespace %s)", message, meta.namespace)
        pool = self._pools.get(Key(meta.namespace, leaving.spec.pool_ref.name))
        if self._events is not None and pool is not None:
            self._events.record(pool, POOLS, RELEASE_FORCED, message, "Warning")

    # ProviderConfigs.

    async def _about_provider(self, question: Question) -> AdmissionAnswer:
        if question.operation == "DELETE":
            text = _text(question, "oldObject")
            if _head(text, "oldObject").metadata.deletion_timestamp is not None:
                return review.allow()
            leaving = _decoded(ProviderConfig, text, "oldObject")
            why = providerconfig.why_not_deleted(leaving, await self._clusters_on(leaving))
            return review.forbid(question, why) if why else review.allow()
        if question.operation not in ("CREATE", "UPDATE"):
            return review.allow()
        new_text, old = _text(question, "object"), None
        if question.operation == "UPDATE":
            old_text = _text(question, "oldObject")
            before, after = _head(old_text, "oldObject"), _head(new_text, "object")
            if before.spec == after.spec:
                return review.allow()
            old = _decoded(ProviderConfig, old_text, "oldObject")
        new = _decoded(ProviderConfig, new_text, "object")
        lacking = await self._lacking(question, providerconfig.rights(old, new, self._home))
        if lacking:
            return review.forbid(question, lacking)
        around = providerconfig.Surroundings(self._home, await self._pools_named_by(new))
        if old is not None and providerconfig.gives_up(old, new):
            left = [Key(self._home, name) for name in providerconfig.removed(old, new)]
            held = [allocation for key in left for allocation in self._allocations.by(BY_POOL, key)]
            around = around._replace(clusters=await self._clusters_on(old), allocations=held)
        verdict = providerconfig.judge(old, new, around)
        if verdict.problems:
            return review.refuse(question, verdict.problems, msgspec.json.decode(new_text), verdict.warnings)
        return review.allow(verdict.warnings)

    async def _lacking(self, question: Question, rights: Iterable[Right]) -> str:
        """What the author is told who lacks one of these rights; empty when they have them."""
        found = await missing(self._client, question.user_info, rights, self._read_patience)
        return found.why_not if found is not None else ""

    async def _pools_named_by(self, config: ProviderConfig) -> dict[str, NetworkPool]:
        """The pools that exist; one that the cache does not show was perhaps created a moment ago."""
        found: dict[str, NetworkPool] = {}
        for reference in config.spec.network.pool_refs:
            key = Key(self._home, reference.name)
            pool = self._pools.get(key)
            if pool is None:
                with contextlib.suppress(NotFound):
                    pool = await self._client.get(POOLS, key.name, key.namespace, timeout=self._read_patience)
            if pool is not None:
                found[reference.name] = pool
        return found

    async def _clusters_on(self, config: ProviderConfig) -> list[TenantCluster]:
        """The clusters on a provider, also those that name none and are there by default."""
        clusters = (await self._client.list(CLUSTERS, timeout=self._read_patience)).items
        key, providers = key_of(config), {key_of(config)}
        if any(cluster.spec.provider_config_ref is None for cluster in clusters):
            listed = await self._client.list(PROVIDERS, self._home, timeout=self._read_patience)
            providers |= {key_of(provider) for provider in listed.items}
        return [cluster for cluster in clusters if placement(cluster, providers, self._home) == key]

    # TenantClusters.

    async def _about_cluster(self, question: Question) -> AdmissionAnswer:
        if question.operation not in ("CREATE", "UPDATE"):
            return review.allow()
        text, old = _text(question, "object"), None
        if question.operation == "UPDATE":
            old = _decoded(TenantCluster, _text(question, "oldObject"), "oldObject")
        new, namespace = _decoded(TenantCluster, text, "object"), question.namespace
        lacking = await self._lacking(question, tenantcluster.rights(old, new, namespace, self._home))
        if lacking:
            return review.forbid(question, lacking)
        verdict = AdmissionVerdict()
        for fresh in (False, True):
            team = await self._team(namespace, fresh=fresh)
            named = tenantcluster.new_provider(old, new, self._home)
            provider = await self._provider(named, fresh=fresh) if named is not None else None
            verdict = tenantcluster.judge(old, new, namespace, team, self._home, provider)
            if verdict == AdmissionVerdict():
                break  # what there is to say is looked up again: our caches may be a moment behind
        if verdict.problems:
            return review.refuse(question, verdict.problems, msgspec.json.decode(text), verdict.warnings)
        return review.allow(verdict.warnings)

    # Namespaces.

    async def _about_namespace(self, question: Question) -> AdmissionAnswer:
        """The team of a Namespace changes, by whatever subresource: not by a right in that namespace alone."""
        if question.operation != "UPDATE":
            return review.allow()
        try:
            before, after = (_head(_text(question, part), part).metadata.labels for part in ("oldObject", "object"))
            if team_of_labels(before) == team_of_labels(after):
                return review.allow()
            lacking = await self._lacking(question, [tenantcluster.right_to_change_team(question.name)])
        except _Unreadable as error:
            return review.malformed(question, str(error))
        except KubeError as error:
            return review.undecided(question, str(error))
        return review.forbid(question, lacking) if lacking else review.allow()

    async def _team(self, namespace: str, *, fresh: bool) -> str:
        if self._teams is not None and not fresh:
            return self._teams.of(namespace)
        try:
            found = await self._client.get(NAMESPACE_HEADS, namespace, timeout=self._read_patience)
        except NotFound:
            return ""
        return team_of_labels(found.metadata.labels)

    async def _provider(self, key: Key, *, fresh: bool) -> ProviderConfig | None:
        if self._providers is not None and not fresh:
            return self._providers.get(key)
        try:
            return await self._client.get(PROVIDERS, key.name, key.namespace, timeout=self._read_patience)
        except NotFound:
            return None


def _held_ranges(allocation: IPAllocation) -> list[tuple[Key, Range]]:
    """What an allocation holds, in the pool that it names."""
    held = held_addresses(allocation)
    return [] if held is None else [(pool_key(allocation), held.range)]


class _Unreadable(Exception):
    """A question about one of our kinds whose object we cannot read."""


def _text(question: Question, part: str) -> bytes:
    text = review.raw(question.object if part == "object" else question.old_object)
    if text is None:
        raise _Unreadable(f"the question about this {question.operation} came without its {part}")
    return text


def _head(text: bytes, part: str) -> _Head:
    try:
        return msgspec.json.decode(text, type=_Head)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _Unreadable(f"{part} cannot be read: {error}") from error


def _decoded(kind: type[T], text: bytes, part: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _Unreadable(f"{part} cannot be read as a {kind.__name__}: {error}") from error
