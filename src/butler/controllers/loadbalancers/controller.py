"""Load-balancer addresses: watches, and one reconcile for each tenant.

A tenant is looked at when its Services change, or its allocations, or its pools; and when the clock says that something
idle has been so for long enough. What somebody else makes of MetalLB's pool there shows in the Services as soon as it
matters: one loses its address, gets one that is not the tenant's, or waits in vain; whatever else is found by looking
now and then. Whatever cannot be done is tried again, and whatever is
said about a tenant that does not answer is said to stay so: it alone stalls, and nothing of it is given back.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import IPAllocationType
from butler.api.labels import Annotation, LoadBalancerReason
from butler.api.providerconfig import NetworkMode
from butler.capi.naming import tenant_namespace
from butler.controllers.loadbalancers.growth import grow, longest_run
from butler.controllers.loadbalancers.idleness import due, idle_marks, seconds_to_next
from butler.controllers.loadbalancers.ledger import LedgerTrouble
from butler.controllers.loadbalancers.memory import Memory
from butler.controllers.loadbalancers.platform import label, unlabelled
from butler.controllers.loadbalancers.publishing import entry
from butler.controllers.loadbalancers.status import unreachable, use, verdict
from butler.controllers.loadbalancers.survey import survey
from butler.controllers.loadbalancers.terms import terms_of
from butler.controllers.owners import tenant_key
from butler.controllers.tenantcluster.addresses import further_names, new_request
from butler.controllers.tenantcluster.blocked import Blocked
from butler.controllers.tenantcluster.provider import resolve
from butler.controllers.tenantcluster.status import is_established
from butler.kube.controller import After, Controller
from butler.kube.errors import KubeError
from butler.kube.objects import key_of, namespace_of
from butler.kube.resource import SECRETS, Key
from butler.tenant.clusters import kubeconfig_secret
from butler.tenant.metallb import Outcome, read
from butler.tenant.metallb_signs import can_hand_out, read_sign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantaddon import TenantAddon
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.draining import Draining
    from butler.controllers.loadbalancers.growth import Growth
    from butler.controllers.loadbalancers.ledger import Ledger
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.controllers.loadbalancers.publishing import Publishing
    from butler.controllers.loadbalancers.service_record import ServiceRecord
    from butler.controllers.loadbalancers.settings import LoadBalancerSettings
    from butler.controllers.loadbalancers.survey import Survey
    from butler.controllers.loadbalancers.telling import Telling
    from butler.controllers.loadbalancers.terms import Terms
    from butler.controllers.tenantcluster.views import Views
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.metrics import Metrics
    from butler.kube.resource import Json
    from butler.tenant.feed import Feed, TenantFeeds

PATIENCE: Final = 20.0
"""Seconds for all that there is to say to one tenant in one go."""
TRIES: Final = 5
"""How often in a row a pool is written that somebody else writes too: MetalLB itself does, with every Service."""
CHANCE: Final = 2.9
"""Seconds that MetalLB gets to hand out a free address, before it is asked whether it will. A little less than what
Services that wait get before the status tells of them: then there is a look in any case."""
SOON: Final = 1.0
SELDOM: Final = 30.0
LONGEST_PROBLEM: Final = 500
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
        ledger: Ledger,
        publishing: Publishing,
        draining: Draining,
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
        self._ledger = ledger
        self._publishing = publishing
        self._draining = draining
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
        return [key_of(each) for each in self._views.clusters.values()]

    def _short_of_addresses(self) -> Iterable[Key]:
        return [key for key, uid in self._uids.items() if (found := self._surveys.get(uid)) and found.demand]

    def problem(self, cluster: TenantCluster) -> str:
        """Why the tenant's MetalLB does not have its addresses; empty when it has."""
        memory = self._memories.get(cluster.metadata.uid)
        if memory is None or memory.problem is None:
            return NOT_TOLD
        return f"the tenant's MetalLB does not have its addresses: {memory.problem}" if memory.problem else ""

    def show(self) -> None:
        """Tell the metrics where all tenants stand."""
        found = self._surveys.values()
        self._metrics.show(
            waiting=sum(len(each.waiting) for each in found),
            in_use=sum(each.in_use for each in found),
            idle=sum(each.held - each.in_use for each in found),
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
        if isinstance(provider, Blocked):
            return None
        if provider.spec.network.mode is not NetworkMode.IPAM or cluster.metadata.deletion_timestamp is not None:
            await self._forget(key, cluster.metadata.uid)
            return None
        secret = self._kubeconfigs.get(_kubeconfig_of(cluster))
        if secret is None:
            return None
        self._uids[key] = cluster.metadata.uid
        memory = self._memories.setdefault(cluster.metadata.uid, Memory())
        feed = await self._follow(cluster, secret)
        if feed.trouble or not feed.is_synced:
            return await self._wait_for(cluster, feed, memory)
        try:
            if cluster.spec.paused:
                return await self._leave_alone(cluster, terms_of(cluster, provider), feed, memory)
            return await self._look_after(cluster, terms_of(cluster, provider), feed, memory)
        except LedgerTrouble as trouble:
            raise trouble.error from None

    async def _forget(self, key: Key, uid: str) -> None:
        self._record.forget(key)
        self._memories.pop(uid, None)
        self._surveys.pop(uid, None)
        await self._feeds.forget(uid)

    async def _follow(self, cluster: TenantCluster, secret: Json) -> Feed:
        where = _kubeconfig_of(cluster)

        async def fetch() -> Json:
            return await self._client.get(SECRETS, where.name, where.namespace)

        version = secret["metadata"]["resourceVersion"]
        return await self._feeds.follow(key_of(cluster), cluster.metadata.uid, version, fetch)

    async def _wait_for(self, cluster: TenantCluster, feed: Feed, memory: Memory) -> After:
        if not is_established(cluster):
            return After(SELDOM)  # it comes up yet, and says so elsewhere
        said = unreachable(feed.trouble or "its Services have not been listed yet")
        left = await self._telling.say(cluster, said, None, memory)
        return After(left or SELDOM)

    async def _leave_alone(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> After | None:
        """A cluster that is paused stays as it is, but not in the middle of a drain: MetalLB would hand out nothing."""
        found = self._survey(cluster, terms, feed, memory)
        if not found.draining:
            return None
        await self._draining.break_off(found.draining, memory)
        found = self._survey(cluster, terms, feed, memory)
        await self._publish(cluster, feed, found, memory)
        return None if memory.problem == "" else After(_pause(memory))

    async def _look_after(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> After:
        found = self._survey(cluster, terms, feed, memory)
        if found.draining and (found.demand or any(block.claimed for block in found.draining)):
            await self._draining.break_off(found.draining, memory)
            found = self._survey(cluster, terms, feed, memory)
        waits = [self._settings.look_again, await self._tend(cluster, terms, feed, found, memory)]
        found = self._survey(cluster, terms, feed, memory)
        growth = grow(found, terms, self._views.pools_by_name(), memory.lost)
        # Addresses that cannot be published would help nobody; and a Service that came while some are being taken back
        # ends that first, with the next look, which is due: what comes back may be all that it needs.
        if memory.problem == "" and not found.draining:
            await self._act(cluster, growth)
        waits.append(await self._store_idleness(found, memory))
        said = verdict(found, memory, growth.short)
        if not said.holds and not is_established(cluster):
            return After(max(0.0, min(waits)))  # it comes up yet, and says so elsewhere
        figures = use(found, cluster.status.load_balancers, memory.last_growth, memory.last_shrink)
        waits.append(await self._telling.say(cluster, said, figures, memory) or self._settings.look_again)
        if found.about_to_share:
            waits.append(SOON)
        return After(max(0.0, min(waits)))

    def _survey(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> Survey:
        now = self._clock()
        found = survey(self._views.allocations_for(cluster), feed.services(), now, terms.served_class)
        memory.look(found, feed.services(), now)
        self._surveys[cluster.metadata.uid] = found
        return found

    # Growing.

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

    # On the tenant.

    async def _tend(self, cluster: TenantCluster, terms: Terms, feed: Feed, found: Survey, memory: Memory) -> float:
        """Do what there is to do on the tenant; in how many seconds there is more."""
        before = memory.problem
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._talk(cluster, terms, feed, found, memory)
        except (KubeError, TimeoutError) as error:
            memory.problem = str(error)[:LONGEST_PROBLEM] or f"it was not done within {PATIENCE:.0f} s"
            memory.problem_reason = LoadBalancerReason.TENANT_UNREACHABLE
            memory.published_at = None  # only the next look, by asking, can tell that all is well
            memory.tries += 1
            return _pause(memory)
        finally:
            if memory.problem != before:
                self._told(key_of(cluster))

    async def _talk(self, cluster: TenantCluster, terms: Terms, feed: Feed, found: Survey, memory: Memory) -> float:
        now = self._clock()
        await label(feed.client, unlabelled(cluster, feed.services()))
        waits_in_vain = memory.unsettled is not None and memory.unsettled[0] == LoadBalancerReason.SERVICES_WAITING
        if memory.refusal or waits_in_vain or self._monotonic() >= memory.sign_due:
            memory.refusal = (await read_sign(feed.client)).refused
            memory.sign_due = math.inf
        await self._look_for_lost(feed.client, found, memory)
        going = due(found, terms, now, self._settings.grace)
        rest = memory.no_drain_before - self._monotonic()
        # Not while MetalLB refuses: it would end where it began, again and again.
        if going and rest <= 0 and memory.problem == "" and not memory.refusal:
            await self._draining.begin(going)
            found = self._survey(cluster, terms, feed, memory)
        if found.draining:
            return await self._draining.go_on(cluster, feed.client, found, memory, terms.served_class)
        again = await self._publish(cluster, feed, found, memory)
        if going and memory.problem == "" and not memory.refusal:
            again = min(again, max(0.0, rest))  # no clock and no change would wake us for these
        return min(again, SELDOM) if memory.refusal or memory.in_vain is not None else again

    async def _look_for_lost(self, tenant: Client, found: Survey, memory: Memory) -> None:
        """Where Services wait in vain: ask how many of the free addresses MetalLB itself takes for free."""
        if not 0 < found.demand <= found.free:
            memory.in_vain, memory.lost = None, 0
            return
        now = self._monotonic()
        memory.in_vain = now if memory.in_vain is None else memory.in_vain
        if now - memory.in_vain < CHANCE:
            return
        memory.doubt = True
        standing = await read(tenant)
        there = [block for block in found.blocks if entry(block) in standing.addresses]
        left = can_hand_out(standing.pool, sum(block.range.size for block in there))
        if left is not None:
            memory.lost = max(0, sum(block.free for block in there) - left)

    async def _publish(self, cluster: TenantCluster, feed: Feed, found: Survey, memory: Memory) -> float:
        """See to it that MetalLB has what it should have; without a request where nothing speaks against it."""
        left, asked = self._seconds_to_check(cluster, memory), _asked_to_look(cluster)
        memory.doubt = memory.doubt or asked != memory.asked
        memory.asked = asked
        if memory.entries == frozenset(map(entry, found.blocks)) and not memory.doubt and left > 0:
            return left
        tenant = feed.client
        for _ in range(TRIES):
            published = await self._publishing.put(cluster, tenant, await read(tenant), found.blocks, memory)
            if published.outcome is not Outcome.CONTESTED:
                break
        if memory.problem:
            return _pause(memory)
        if published.outcome is Outcome.WRITTEN:
            memory.sign_due = self._monotonic() + self._settings.settle
            return self._settings.settle
        memory.refusal = (await read_sign(tenant)).refused
        return self._seconds_to_check(cluster, memory)

    def _seconds_to_check(self, cluster: TenantCluster, memory: Memory) -> float:
        """How long what was published can be taken to be so; each tenant a little longer or shorter than the next."""
        if memory.published_at is None:
            return 0.0
        spread = 0.75 + zlib.crc32(cluster.metadata.uid.encode()) % 512 / 1024
        return memory.published_at + self._settings.check_every * spread - self._monotonic()

    async def _store_idleness(self, found: Survey, memory: Memory) -> float:
        """Write down what fell idle, or is used again; in how many seconds the clock has more to say."""
        now, grace = self._clock(), self._settings.grace
        for mark in idle_marks(found, memory.idle_since, now, grace):
            await self._ledger.mark(mark.block.allocation, idle_since=mark.since)
        left = seconds_to_next(found, memory.idle_since, now, grace)
        # A little more, since it is the clock that has to have passed it.
        return self._settings.look_again if left is None else left + 0.05


def _pause(memory: Memory) -> float:
    """Seconds before a tenant that could not be told is told again; it may be without MetalLB for weeks."""
    return min(SELDOM, SOON * 2.0 ** min(memory.tries - 1, 10))


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
        or _asked_to_look(old) != _asked_to_look(new)
    )


def _asked_to_look(cluster: TenantCluster) -> str:
    return cluster.metadata.annotations.get(Annotation.LOOK_AGAIN, "")


def _provider_changed(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    return old is None or new is None or old.metadata.generation != new.metadata.generation


def _has_more_room(old: NetworkPool | None, new: NetworkPool | None) -> bool:
    return longest_run(new) > longest_run(old)
