"""Load-balancer addresses: watches, and one reconcile for each tenant.

A tenant is looked at when its Services change, or its allocations, or its pools; and when the clock says that something
idle has been so for long enough. What others make of MetalLB's pool there shows in the Services as soon as it
matters: one loses its address, gets one that is not the tenant's, or waits in vain; the rest is found by looking now
and then. What cannot be done is tried again, and what is said about a tenant that does not answer stays so: it alone
stalls, and nothing of it is given back.
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
from butler.controllers.loadbalancers.look import Look
from butler.controllers.loadbalancers.next_look import ON_CHANGE, SELDOM, SOON, NextLook, pause
from butler.controllers.loadbalancers.publisher import PublishedPool, asked_to_look
from butler.controllers.loadbalancers.states import TenantStates
from butler.controllers.loadbalancers.steps import Steps, trouble_of
from butler.controllers.loadbalancers.upkeep import Upkeep
from butler.kube.absence import read
from butler.kube.controller import After, Controller
from butler.kube.errors import KubeError
from butler.kube.resource import SECRETS
from butler.rules.allocation.owner import tenant_key
from butler.rules.allocation.release import DELETED_BY_REQUEST
from butler.rules.blocked import Blocked
from butler.rules.loadbalancer import foreign_addresses as sightings
from butler.rules.loadbalancer.deletion import DRAINING, unknown, waits_for
from butler.rules.loadbalancer.foreign_addresses import PoolAddresses
from butler.rules.loadbalancer.growth import ENOUGH, grow, longest_run
from butler.rules.loadbalancer.idleness import idle_marks, still_idle, when_idle_changes
from butler.rules.loadbalancer.policy import terms_of
from butler.rules.loadbalancer.status import Obstacles, PoolChanges, figures_of, new_status, unreachable, verdict
from butler.rules.loadbalancer.usage import granted_range
from butler.rules.tenant.addons import METALLB, installs_addons
from butler.rules.tenant.address_requests import further_names, new_request
from butler.rules.tenant.provider import resolve
from butler.rules.tenant.status import is_established
from butler.rules.tenant_namespace import tenant_namespace
from butler.tenant.clusters import kubeconfig_secret
from butler.tenant.service_feed import LONGEST_TROUBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
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
    from butler.controllers.loadbalancers.publisher import Publisher
    from butler.controllers.loadbalancers.service_record import ServiceRecord
    from butler.controllers.loadbalancers.states import LastLook
    from butler.controllers.loadbalancers.status_writer import LoadBalancerStatusWriter
    from butler.controllers.service_looks import ServiceLooks
    from butler.controllers.tenant_caches import Views
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.metrics import Metrics
    from butler.rules.loadbalancer.growth import Growth
    from butler.rules.loadbalancer.policy import LoadBalancerPolicy
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import HeldBlock, Usage
    from butler.tenant.service_feed import ServiceFeed, TenantFeeds

AGAIN: Final = NextLook(5.0)
"""Seconds until a kubeconfig is asked for again that could not be read."""
AGAIN_IF_AWAITED: Final = NextLook(0.2)
"""Until the next look at a tenant that grants wait for."""
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
        publisher: Publisher,
        draining: Draining,
        deletions: Deletions,
        writer: LoadBalancerStatusWriter,
        record: ServiceRecord,
        metrics: LoadBalancerMetrics,
        settings: LoadBalancerSettings,
        told: Callable[[Key], None],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        looks: ServiceLooks | None = None,
    ) -> None:
        self._client = client
        self._views = views
        self._feeds = feeds
        self._kubeconfigs = kubeconfigs
        self._secrets = secrets
        self._ledger = ledger
        self._upkeep = Upkeep(publisher, draining, settings, clock, monotonic)
        self._publisher = publisher
        self._draining = draining
        self._deletions = deletions
        self._writer = writer
        self._record = record
        self._metrics = metrics
        self._settings = settings
        self._told = told
        self._looks = looks
        self._clock = clock
        self._monotonic = monotonic
        self._states: dict[str, TenantStates] = {}
        self._uids: dict[Key, str] = {}
        """Which cluster has a name at present, for when it is gone."""
        self._usages: dict[str, Usage] = {}
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
        return [key for key, uid in self._uids.items() if (found := self._usages.get(uid)) and found.demand]

    def problem(self, cluster: TenantCluster) -> str:
        """Why the tenant's MetalLB does not have its addresses; empty when it has."""
        states = self._states.get(cluster.metadata.uid)
        if states is None or states.pool.problem is None:
            return NOT_TOLD
        if states.pool.problem:
            return f"the tenant's MetalLB does not have its addresses: {states.pool.problem}"
        until = states.status.settles_until
        return SETTLES if until is not None and self._monotonic() < until else ""

    def with_first_word(self, cluster: TenantCluster, status: TenantClusterStatus) -> TenantClusterStatus:
        """The status that says that a cluster can be used, with what there is to say here: one write tells both."""
        states = self._states.get(cluster.metadata.uid)
        if states is None or states.status.first_word is None:
            return status
        said, figures = states.status.first_word
        return new_status(msgspec.structs.replace(cluster, status=status), said, figures, self._clock())

    def show(self) -> None:
        """Tell the metrics where all tenants stand."""
        found = self._usages.values()
        self._metrics.show(
            waiting=sum(len(usage.waiting) for usage in found),
            in_use=sum(usage.in_use for usage in found),
            idle=sum(usage.held - usage.in_use for usage in found),
            watched=len(self._feeds),
            unreachable=sum(1 for feed in self._feeds if feed.trouble),
        )

    async def stand_down(self) -> None:
        """Another process leads: hang up everywhere, and forget what will be out of date."""
        self._states.clear()
        self._usages.clear()
        self._uids.clear()
        if self._looks is not None:
            self._looks.anew()
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
        policy, secret = terms_of(cluster, provider), self._kubeconfigs.get(_kubeconfig_of(cluster))
        if cluster.metadata.deletion_timestamp is not None:
            return await self._let_go(cluster, policy, secret)
        if not self._concerns_us(cluster, provider):
            await self._forget(key, cluster.metadata.uid)
            await self._writer.retract(cluster)
            if self._looks is not None:
                self._looks.looked(cluster.metadata.uid, self._looks.turn)
            return None
        states = self._states.setdefault(cluster.metadata.uid, TenantStates())
        if secret is None:
            return await self._without_kubeconfig(cluster, states)
        if self._awaits_metallb(cluster) and not self._deleted(cluster):
            return None
        try:
            feed = await self._follow(cluster, secret)
        except KubeError as error:
            again = await self._wait_for(cluster, f"its kubeconfig cannot be read: {error}"[:LONGEST_TROUBLE], states)
            return min(again, AGAIN).after()
        if feed.trouble or not feed.is_synced:
            again = await self._wait_for(cluster, feed.trouble or "its Services have not been listed yet", states)
        else:
            again = await self._look_after(self._look(cluster, policy, feed, states), states)
        return again.after()

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
        self._states.pop(uid, None)
        self._usages.pop(uid, None)
        await self._feeds.forget(uid)

    async def _follow(self, cluster: TenantCluster, secret: Json) -> ServiceFeed:
        where = _kubeconfig_of(cluster)

        async def fetch() -> Json:
            return await self._secrets.take(where, version)

        self._uids[key_of(cluster)] = cluster.metadata.uid
        version = secret["metadata"]["resourceVersion"]
        endpoint = self._views.endpoint_of(cluster.metadata.uid) or ""
        return await self._feeds.follow(key_of(cluster), cluster.metadata.uid, version, fetch, endpoint)

    # Tenants that are not looked after.

    async def _let_go(self, cluster: TenantCluster, policy: LoadBalancerPolicy, secret: Json | None) -> After | None:
        """A cluster that is being deleted is not followed any more, once a drain in it has ended."""
        uid = cluster.metadata.uid
        states = self._states.setdefault(uid, TenantStates(PublishedPool(in_drain=False)))
        marked = any(
            allocation.status.draining_since for allocation in self._allocations(cluster) if granted_range(allocation)
        )
        if secret is not None and (marked or states.pool.in_drain):
            feed, steps = await self._follow(cluster, secret), Steps(SELDOM)
            if not feed.trouble and feed.is_synced:
                await steps.do(self._upkeep.leave_alone(self._look(cluster, policy, feed, states), states))
            if feed.trouble or not feed.is_synced or steps.errors or states.pool.problem:
                return steps.again.after()
        await self._forget(key_of(cluster), uid)
        return None

    async def _without_kubeconfig(self, cluster: TenantCluster, states: TenantStates) -> After | None:
        """Before a tenant has an API server, nothing can use its addresses; one that had one cannot be reached now."""
        key = _kubeconfig_of(cluster)
        if is_established(cluster):
            return (await self._wait_for(cluster, f"its kubeconfig, Secret {key}, does not exist", states)).after()
        steps = Steps(SELDOM)
        for allocation in self._deleted(cluster):
            if await read(self._client, SECRETS, key) is not None:
                return SOON.after()  # the view does not show it yet
            await steps.do(self._ledger.release(allocation, DELETED_BY_REQUEST))
        return steps.again.after() if steps.errors else None

    async def _wait_for(self, cluster: TenantCluster, why: str, states: TenantStates) -> NextLook:
        """A tenant that does not answer keeps all that it has, and says so."""
        steps = Steps(SELDOM)
        for allocation in self._deleted(cluster):
            await steps.do(self._deletions.tell(allocation, unknown(f"the tenant cannot be reached: {why}")))
        # One that comes up yet says so elsewhere.
        if is_established(cluster) or _says_all_is_well(cluster):
            await steps.do(self._writer.say(cluster, unreachable(why), None, states.status))
        return steps.again

    # Those that are.

    def _look(
        self, cluster: TenantCluster, policy: LoadBalancerPolicy, feed: ServiceFeed, states: TenantStates
    ) -> Look:
        def saw(found: Usage, services: Sequence[Balancer]) -> None:
            self._publisher.saw(found, services, states.pool)
            self._draining.saw(found, states.drain)
            states.look.idle_since = still_idle(found, states.look.idle_since, self._clock())
            self._usages[cluster.metadata.uid] = found

        return Look(cluster, policy, feed, self._views.usable_by, saw, self._clock)

    async def _look_after(self, look: Look, states: TenantStates) -> NextLook:
        """Try every step, whatever comes of the others; and whatever comes of all, say how things stand."""
        steps, growth, last = Steps(NextLook(self._settings.look_again)), ENOUGH, states.look
        before = (states.pool.problem, states.status.settles_until)
        if look.cluster.spec.paused:
            await steps.do(self._upkeep.leave_alone(look, states))
        else:
            await steps.do(self._upkeep.tend(look, states))
            found = look.usage()
            growth = grow(found, look.policy, self._views.pools_by_name(), states.pool.lost)
            if found.going and last.is_short != bool(growth.short):
                steps.no_later_than(SOON)  # then MetalLB may hand out what it may not now, or the other way round
            last.is_short = bool(growth.short)
            # Addresses that cannot be published would help no Service; and one that came while some are being taken
            # back ends that first, with the next look, which is due: what comes back may be all that it needs.
            if states.pool.problem == "" and not (found.draining and found.is_held_up):
                await steps.do(self._act(look.cluster, growth))
            await steps.do(self._store_idleness(found, last.idle_since))
        for block in look.usage().going:
            await steps.do(self._tell_deletion(look, block, states.pool))
        last.trouble = trouble_of(steps.errors, last.trouble)
        if last.trouble is not None:
            steps.no_later_than(pause(last.trouble.tries))
        await steps.do(self._say(look, states, growth))
        if (states.pool.problem, states.status.settles_until) != before:
            self._told(key_of(look.cluster))  # at last: what is woken asks what there is to say
        return steps.again

    async def _tell_deletion(self, look: Look, block: HeldBlock, pool: PublishedPool) -> NextLook:
        if block.is_draining:
            return ON_CHANGE  # that is said with the mark; and a write now would begin the drain anew
        said, obstacle = waits_for(block, look.services()), pool.problem or pool.refusal
        if look.cluster.spec.paused:
            said = unknown("the cluster is paused")
        elif said is DRAINING and obstacle:
            said = unknown(f"MetalLB on the tenant does not take its configuration: {obstacle}")
        return await self._deletions.tell(block.allocation, said)

    async def _say(self, look: Look, states: TenantStates, growth: Growth) -> NextLook:
        cluster, found, pool, status = look.cluster, look.usage(), states.pool, states.status
        turn = self._looks.turn if self._looks is not None and self._views.allocations.is_followed else None
        foreign, foreign_changes = self._look_for_foreign(look, states.look, awaited=turn is not None)
        obstacles = Obstacles(pool.problem or "", pool.problem_reason, pool.refusal, states.look.trouble)
        said = verdict(found, obstacles, growth.short, look.services(), paused=cluster.spec.paused, foreign=foreign)
        changes = PoolChanges(status.last_growth, status.last_shrink)
        figures = figures_of(found, cluster.status.load_balancers, changes, foreign)
        is_up = is_established(cluster) or _says_all_is_well(cluster)
        again = await self._writer.report(cluster, said, figures, status, is_up=is_up)
        if not is_up:  # it wakes us when it can be used
            return again
        looked = self._looked(cluster, foreign, turn)
        return min(again, looked, SOON if found.about_to_share else ON_CHANGE, foreign_changes)

    def _looked(self, cluster: TenantCluster, foreign: list[int], turn: int | None) -> NextLook:
        """Let grants go on if they waited for this look; when to look again if it does not count."""
        uid, looks = cluster.metadata.uid, self._looks
        if looks is None or not looks.is_due(uid):
            return ON_CHANGE
        now = self._views.clusters.get(key_of(cluster))
        figures = now.status.load_balancers if now is not None else None
        if turn is None or figures is None or not set(sightings.as_told(foreign)) <= set(figures.foreign_addresses):
            return AGAIN_IF_AWAITED
        looks.looked(uid, turn)
        return ON_CHANGE

    def _look_for_foreign(self, look: Look, last: LastLook, *, awaited: bool) -> tuple[list[int], NextLook]:
        """The addresses of pools that Services show and the tenant does not hold; and when the clock changes them."""
        at_once = awaited and self._looks is not None and self._looks.is_due(look.cluster.metadata.uid)
        now, figures = self._monotonic(), look.cluster.status.load_balancers
        if last.foreign is None:
            last.foreign = sightings.recalled(figures.foreign_addresses if figures else (), now)
        shown = sightings.foreign(look.services(), self._views.usable_by(look.cluster), self._handed_out.hand_out)
        last.foreign = sightings.remembered(shown, last.foreign, now, at_once=at_once)
        left = sightings.seconds_to_next(last.foreign, now)
        return sightings.counting(last.foreign), ON_CHANGE if left is None else NextLook(left)

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

    async def _store_idleness(self, found: Usage, idle_since: Mapping[str, datetime]) -> NextLook:
        """Write down what fell idle, or is used again; and when the clock has more to say."""
        now, grace = self._clock(), self._settings.grace
        for mark in idle_marks(found, idle_since, now, grace):
            await self._ledger.mark(mark.block.allocation, idle_since=mark.since)
        moment = when_idle_changes(found, idle_since, now, grace)
        # A little more, since it is the clock that has to have passed it.
        return ON_CHANGE if moment is None else NextLook.within((moment - now).total_seconds() + 0.05)


def _kubeconfig_of(cluster: TenantCluster) -> Key:
    return Key(tenant_namespace(cluster), kubeconfig_secret(cluster.metadata.name))


def _tenant_of(allocation: IPAllocation) -> Iterable[Key]:
    return [tenant_key(allocation)] if allocation.spec.type is IPAllocationType.LOAD_BALANCER else []


def _cluster_of_addon(addon: TenantAddon) -> Iterable[Key]:
    """The tenant that waits for its MetalLB."""
    return [Key(addon.metadata.namespace, addon.spec.cluster_ref.name)] if addon.spec.addon == METALLB else []


def _wish_changed(old: TenantCluster | None, new: TenantCluster | None) -> bool:
    """Whether the wish changed, or a person asks for a look."""
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
