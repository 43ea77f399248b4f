"""Load-balancer addresses: watches, and one reconcile for each tenant.

A tenant is looked at when its Services change, or its allocations, or its pools; and when the clock says that something
idle has been so for long enough. What somebody else makes of MetalLB's pool there shows in the Services as soon as it
matters: one loses its address, gets one that is not the tenant's, or waits in vain; whatever else is found by looking
now and then. Whatever cannot be done is tried again, and whatever is
said about a tenant that does not answer is said to stay so: it alone stalls, and nothing of it is given back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.conditions import condition_holds
from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import ConditionType
from butler.api.objects import Key, is_being_deleted, key_of, namespace_of
from butler.api.providerconfig import NetworkMode
from butler.controllers.loadbalancers.memory import Memory
from butler.controllers.loadbalancers.steps import Steps, trouble_of
from butler.controllers.loadbalancers.upkeep import SELDOM, SOON, Upkeep, asked_to_look, pause
from butler.kube.absence import read
from butler.kube.controller import After, Controller
from butler.kube.errors import KubeError
from butler.kube.resource import SECRETS
from butler.rules.allocation.owner import tenant_key
from butler.rules.allocation.release import DELETED_BY_REQUEST
from butler.rules.loadbalancer import foreign_addresses as sightings
from butler.rules.loadbalancer.deletion import DRAINING, unknown, waits_for
from butler.rules.loadbalancer.foreign_addresses import PoolAddresses
from butler.rules.loadbalancer.growth import ENOUGH, grow, longest_run
from butler.rules.loadbalancer.idleness import idle_marks, seconds_to_next
from butler.rules.loadbalancer.policy import terms_of
from butler.rules.loadbalancer.status import new_status, unreachable, use, verdict
from butler.rules.loadbalancer.usage import granted_range, survey
from butler.rules.tenant.addons import METALLB, installs_addons
from butler.rules.tenant.address_requests import further_names, new_request
from butler.rules.tenant.blocked import Blocked
from butler.rules.tenant.namespaces import tenant_namespace
from butler.rules.tenant.provider import resolve
from butler.rules.tenant.status import is_established
from butler.tenant.clusters import kubeconfig_secret
from butler.tenant.service_feed import LONGEST_TROUBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Json
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantaddon import TenantAddon
    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
    from butler.controllers.kubeconfig_secrets import KubeconfigSecrets
    from butler.controllers.loadbalancers.allocations import Ledger
    from butler.controllers.loadbalancers.deletions import Deletions
    from butler.controllers.loadbalancers.draining import Draining
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.controllers.loadbalancers.publishing import Publishing
    from butler.controllers.loadbalancers.service_record import ServiceRecord
    from butler.controllers.loadbalancers.status_writer import Telling
    from butler.controllers.tenantcluster.caches import Views
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.metrics import Metrics
    from butler.rules.loadbalancer.growth import Growth
    from butler.rules.loadbalancer.policy import Terms
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import Block, Survey
    from butler.tenant.service_feed import Feed, TenantFeeds

AGAIN: Final = 5.0
"""Seconds until a kubeconfig is asked for again that could not be read."""
SETTLES: Final = "Services on the tenant are about to get their first addresses"
NOT_TOLD: Final = "the tenant's MetalLB has not been told its addresses yet"


class LoadBalancerController:
    """Keeps tenants' load-balancer addresses as their Services need them.

    `kubeconfigs` are Steward's Secrets, without their contents; `told` is called with a cluster when something changed
    about whether its MetalLB has its addresses; `clock` gives the time of day in UTC, `monotonic` the other one.
    """

    def __init__(
        self,
        client: Client,
        views: Views,
        feeds: TenantFeeds,
        kubeconfigs: Cache[Json],
        secrets: KubeconfigSecrets,
        ledger: Ledger,
        publishing: Publishing,
        draining: Draining,
        deletions: Deletions,
        telling: Telling,
        record: ServiceRecord,
        metrics: LoadBalancerMetrics,
        settings: LoadBalancerSettings,
        told: Callable[[Key], None],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._client = client
        self._views = views
        self._feeds = feeds
        self._kubeconfigs = kubeconfigs
        self._secrets = secrets
        self._ledger = ledger
        self._upkeep = Upkeep(publishing, draining, settings, self._survey, clock, monotonic)
        self._deletions = deletions
        self._telling = telling
        self._record = record
        self._metrics = metrics
        self._settings = settings
        self._told = told
        self._clock = clock
        self._monotonic = monotonic
        self._memories: dict[str, Memory] = {}
        self._uids: dict[Key, str] = {}
        """Which cluster has a name at present, for when it is gone."""
        self._surveys: dict[str, Survey] = {}
        self._handed_out = PoolAddresses()
        views.pools.on_change(self._handed_out.changed)

    def controller(self, *, workers: int = 64, metrics: Metrics | None = None) -> Controller:
        """The queue and the watches that call `reconcile`. Most workers only wait for a tenant to answer."""
        controller = Controller("loadbalancers", self.reconcile, workers=workers, metrics=metrics)
        views = self._views
        controller.watches(views.clusters, when=_wish_changed)
        controller.watches(views.providers, self._placed_on, when=_provider_changed)
        controller.watches(views.pools, lambda _: self._short_of_addresses(), when=_has_more_room)
        controller.watches(views.allocations, _tenant_of)
        controller.watches(views.addons, _cluster_of_addon)
        controller.watches(self._kubeconfigs, lambda secret: views.in_namespace(namespace_of(secret)))
        return controller

    def _placed_on(self, _: ProviderConfig) -> Iterable[Key]:
        return [key_of(cluster) for cluster in self._views.clusters.values()]

    def _short_of_addresses(self) -> Iterable[Key]:
        return [key for key, uid in self._uids.items() if (found := self._surveys.get(uid)) and found.demand]

    def problem(self, cluster: TenantCluster) -> str:
        """Why the tenant's MetalLB does not have its addresses; empty when it has."""
        memory = self._memories.get(cluster.metadata.uid)
        if memory is None or memory.problem is None:
            return NOT_TOLD
        if memory.problem:
            return f"the tenant's MetalLB does not have its addresses: {memory.problem}"
        settles = memory.settles_until is not None and self._monotonic() < memory.settles_until
        return SETTLES if settles else ""

    def with_first_word(self, cluster: TenantCluster, status: TenantClusterStatus) -> TenantClusterStatus:
        """The status that says that a cluster can be used, with what there is to say here: one write tells both."""
        memory = self._memories.get(cluster.metadata.uid)
        if memory is None or memory.first_word is None:
            return status
        said, figures = memory.first_word
        return new_status(msgspec.structs.replace(cluster, status=status), said, figures, self._clock())

    def show(self) -> None:
        """Tell the metrics where all tenants stand."""
        found = self._surveys.values()
        self._metrics.show(
            waiting=sum(len(text.waiting) for text in found),
            in_use=sum(text.in_use for text in found),
            idle=sum(text.held - text.in_use for text in found),
            watched=len(self._feeds),
            unreachable=sum(1 for feed in self._feeds if feed.trouble),
        )

    async def stand_down(self) -> None:
        """Another process leads: hang up everywhere, and forget what will be out of date."""
        self._memories.clear()
        self._surveys.clear()
        self._uids.clear()
        await self._feeds.aclose()
        self.show()

    # One look.

    async def reconcile(self, key: Key) -> After | None:
        """Look at a tenant, and do what is to be done."""
        cluster = self._views.clusters.get(key)
        if cluster is None or cluster.metadata.uid != self._uids.get(key, cluster.metadata.uid):
            await self._forget(key, self._uids.pop(key, ""))
        if cluster is None:
            return None
        cluster = self._views.in_its_team(cluster)
        provider = resolve(cluster, self._views.all_providers(), self._views.home, self._views.team_of(cluster))
        terms, secret = terms_of(cluster, provider), self._kubeconfigs.get(_kubeconfig_of(cluster))
        if cluster.metadata.deletion_timestamp is not None:
            return await self._let_go(cluster, terms, secret)
        if not self._concerns_us(cluster, provider):
            await self._forget(key, cluster.metadata.uid)
            await self._telling.retract(cluster)
            return None
        memory = self._memories.setdefault(cluster.metadata.uid, Memory())
        if secret is None:
            return await self._without_kubeconfig(cluster, memory)
        if self._awaits_metallb(cluster) and not self._deleted(cluster):
            return None
        try:
            feed = await self._follow(cluster, secret)
        except KubeError as error:
            after = await self._wait_for(cluster, f"its kubeconfig cannot be read: {error}"[:LONGEST_TROUBLE], memory)
            return After(min(after.seconds, AGAIN))
        if feed.trouble or not feed.is_synced:
            return await self._wait_for(cluster, feed.trouble or "its Services have not been listed yet", memory)
        return await self._look_after(cluster, terms, feed, memory)

    def _concerns_us(self, cluster: TenantCluster, provider: ProviderConfig | Blocked) -> bool:
        """Whether the tenant may get addresses, or has some: it keeps them whatever becomes of its provider."""
        if not isinstance(provider, Blocked) and provider.spec.network.mode is NetworkMode.IPAM:
            return True
        return any(
            allocation.status.phase is not IPAllocationPhase.RELEASED for allocation in self._allocations(cluster)
        )

    def _allocations(self, cluster: TenantCluster) -> list[IPAllocation]:
        own = self._views.usable_by(cluster)
        return [allocation for allocation in own if allocation.spec.type is IPAllocationType.LOAD_BALANCER]

    def _deleted(self, cluster: TenantCluster) -> list[IPAllocation]:
        """Those that were deleted and still hold addresses."""
        return [
            allocation
            for allocation in self._allocations(cluster)
            if is_being_deleted(allocation) and granted_range(allocation)
        ]

    def _awaits_metallb(self, cluster: TenantCluster) -> bool:
        """Whether Butler still has to install MetalLB there: the addon's next change calls for another look.

        Until then there is nothing to publish to; asking again and again was a third of what a new cluster cost.
        """
        if is_established(cluster) or _says_all_is_well(cluster) or not installs_addons(cluster):
            return False
        found = [addon for addon in self._views.addons_of(cluster) if addon.spec.addon == METALLB]
        return all(addon.status.installed_version is None for addon in found)

    async def _forget(self, key: Key, uid: str) -> None:
        self._record.forget(key)
        self._memories.pop(uid, None)
        self._surveys.pop(uid, None)
        await self._feeds.forget(uid)

    async def _follow(self, cluster: TenantCluster, secret: Json) -> Feed:
        where = _kubeconfig_of(cluster)

        async def fetch() -> Json:
            return await self._secrets.take(where, version)

        self._uids[key_of(cluster)] = cluster.metadata.uid
        version = secret["metadata"]["resourceVersion"]
        endpoint = self._views.endpoint_of(cluster.metadata.uid) or ""
        return await self._feeds.follow(key_of(cluster), cluster.metadata.uid, version, fetch, endpoint)

    # Tenants that are not looked after.

    async def _let_go(self, cluster: TenantCluster, terms: Terms, secret: Json | None) -> After | None:
        """A cluster that is being deleted is not followed any more, once a drain in it has ended."""
        uid = cluster.metadata.uid
        memory = self._memories.setdefault(uid, Memory(in_drain=False))
        marked = any(
            allocation.status.draining_since for allocation in self._allocations(cluster) if granted_range(allocation)
        )
        if secret is not None and (marked or memory.in_drain):
            feed, steps = await self._follow(cluster, secret), Steps(SELDOM)
            if not feed.trouble and feed.is_synced:
                await steps.do(self._upkeep.leave_alone(cluster, terms, feed, memory))
            if feed.trouble or not feed.is_synced or steps.errors or memory.problem:
                return After(min(steps.waits))
        await self._forget(key_of(cluster), uid)
        return None

    async def _without_kubeconfig(self, cluster: TenantCluster, memory: Memory) -> After | None:
        """Before a tenant has an API server, nothing can use its addresses; one that had one cannot be reached now."""
        key = _kubeconfig_of(cluster)
        if is_established(cluster):
            return await self._wait_for(cluster, f"its kubeconfig, Secret {key}, does not exist", memory)
        steps = Steps(SELDOM)
        for allocation in self._deleted(cluster):
            if await read(self._client, SECRETS, key) is not None:
                return After(SOON)  # the view does not show it yet
            await steps.do(self._ledger.release(allocation, DELETED_BY_REQUEST))
        return After(min(steps.waits)) if steps.errors else None

    async def _wait_for(self, cluster: TenantCluster, why: str, memory: Memory) -> After:
        """A tenant that does not answer keeps all that it has, and says so."""
        steps = Steps(SELDOM)
        for allocation in self._deleted(cluster):
            await steps.do(self._deletions.tell(allocation, unknown(f"the tenant cannot be reached: {why}"), memory))
        # One that comes up yet says so elsewhere.
        if is_established(cluster) or _says_all_is_well(cluster):
            await steps.do(self._telling.say(cluster, unreachable(why), None, memory))
        return After(min(steps.waits))

    # Those that are.

    async def _look_after(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> After:
        """Try every step, whatever comes of the others; and whatever comes of all, say how things stand."""
        steps, growth, before = Steps(self._settings.look_again), ENOUGH, (memory.problem, memory.settles_until)
        if cluster.spec.paused:
            await steps.do(self._upkeep.leave_alone(cluster, terms, feed, memory))
        else:
            await steps.do(self._upkeep.tend(cluster, terms, feed, memory))
            found = self._survey(cluster, terms, feed, memory)
            growth = grow(found, terms, self._views.pools_by_name(), memory.lost)
            if found.going and memory.is_short != bool(growth.short):
                steps.waits.append(SOON)  # then MetalLB may hand out what it may not now, or the other way round
            memory.is_short = bool(growth.short)
            # Addresses that cannot be published would help nobody; and a Service that came while some are being taken
            # back ends that first, with the next look, which is due: what comes back may be all that it needs.
            if memory.problem == "" and not (found.draining and found.is_held_up):
                await steps.do(self._act(cluster, growth))
            await steps.do(self._store_idleness(found, memory))
        for block in self._survey(cluster, terms, feed, memory).going:
            await steps.do(self._tell_deletion(cluster, block, feed, memory))
        memory.trouble = trouble_of(steps.errors, memory.trouble)
        if memory.trouble is not None:
            steps.waits.append(pause(memory.trouble.tries))
        await steps.do(self._say(cluster, terms, feed, memory, growth))
        if (memory.problem, memory.settles_until) != before:
            self._told(key_of(cluster))  # at last: who is told asks what there is to say
        return After(max(0.0, min(steps.waits)))

    async def _tell_deletion(self, cluster: TenantCluster, block: Block, feed: Feed, memory: Memory) -> float | None:
        if block.is_draining:
            return None  # that is said with the mark; and a write now would begin the drain anew
        said, obstacle = waits_for(block, feed.services()), memory.problem or memory.refusal
        if cluster.spec.paused:
            said = unknown("the cluster is paused")
        elif said is DRAINING and obstacle:
            said = unknown(f"MetalLB on the tenant does not take its configuration: {obstacle}")
        return await self._deletions.tell(block.allocation, said, memory)

    async def _say(
        self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory, growth: Growth
    ) -> float | None:
        found = self._survey(cluster, terms, feed, memory)
        foreign = self._look_for_foreign(cluster, feed, memory)
        said = verdict(found, memory, growth.short, feed.services(), paused=cluster.spec.paused, foreign=foreign)
        figures = use(found, cluster.status.load_balancers, memory, foreign)
        memory.first_word = (said, figures) if said.holds else None
        if not (is_established(cluster) or _says_all_is_well(cluster)):
            # It comes up yet, says so elsewhere, and wakes us when it can be used.
            settling = self._telling.seconds_to_pass(said, memory)
            memory.settles_until = self._monotonic() + settling if settling else None
            return settling or None
        memory.settles_until = None
        left = await self._telling.say(cluster, said, figures, memory)
        waits = (
            left,
            SOON if found.about_to_share else None,
            sightings.seconds_to_next(memory.foreign or {}, self._monotonic()),
        )
        return min((wait for wait in waits if wait is not None), default=None)

    def _look_for_foreign(self, cluster: TenantCluster, feed: Feed, memory: Memory) -> list[int]:
        """The addresses of pools that Services show and the tenant does not hold."""
        now, figures = self._monotonic(), cluster.status.load_balancers
        if memory.foreign is None:
            memory.foreign = sightings.recalled(figures.foreign_addresses if figures else (), now)
        shown = sightings.foreign(feed.services(), self._views.usable_by(cluster), self._handed_out.hand_out)
        memory.foreign = sightings.remembered(shown, memory.foreign, now)
        return sightings.counting(memory.foreign)

    def _survey(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> Survey:
        now = self._clock()
        found = survey(self._views.usable_by(cluster), feed.services(), now, terms.served_class)
        memory.look(found, feed.services(), now)
        self._surveys[cluster.metadata.uid] = found
        return found

    async def _act(self, cluster: TenantCluster, growth: Growth) -> None:
        await asyncio.gather(*map(self._ledger.give_up, growth.drop))
        names = further_names(cluster, IPAllocationType.LOAD_BALANCER, self._views.is_allocation)
        requests = [
            new_request(
                cluster,
                IPAllocationType.LOAD_BALANCER,
                ask.pool,
                ask.count,
                next(names),
                self._views.home,
                grown=True,
                reason=growth.because,
            )
            for ask in growth.ask
        ]
        await asyncio.gather(*map(self._ledger.ask, requests))

    async def _store_idleness(self, found: Survey, memory: Memory) -> float | None:
        """Write down what fell idle, or is used again; in how many seconds the clock has more to say."""
        now, grace = self._clock(), self._settings.grace
        for mark in idle_marks(found, memory.idle_since, now, grace):
            await self._ledger.mark(mark.block.allocation, idle_since=mark.since)
        left = seconds_to_next(found, memory.idle_since, now, grace)
        # A little more, since it is the clock that has to have passed it.
        return None if left is None else left + 0.05


def _kubeconfig_of(cluster: TenantCluster) -> Key:
    return Key(tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name))


def _tenant_of(allocation: IPAllocation) -> Iterable[Key]:
    return [tenant_key(allocation)] if allocation.spec.type is IPAllocationType.LOAD_BALANCER else []


def _cluster_of_addon(addon: TenantAddon) -> Iterable[Key]:
    return [Key(addon.metadata.namespace, addon.spec.cluster_ref.name)]


def _wish_changed(old: TenantCluster | None, new: TenantCluster | None) -> bool:
    """Whether the wish changed, or somebody asks for a look."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.generation != after.generation
        or before.deletion_timestamp != after.deletion_timestamp
        or asked_to_look(old) != asked_to_look(new)
        or is_established(old) != is_established(new)
        or old.status.control_plane_endpoint != new.status.control_plane_endpoint
    )


def _provider_changed(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    return old is None or new is None or old.metadata.generation != new.metadata.generation


def _has_more_room(old: NetworkPool | None, new: NetworkPool | None) -> bool:
    return longest_run(new) > longest_run(old)


def _says_all_is_well(cluster: TenantCluster) -> bool:
    return condition_holds(cluster.status.conditions, ConditionType.LOAD_BALANCERS_READY)
