"""Making a machine's objects from their templates, and giving it an address that no other machine has.

The choice of an address and the note of who chose it happen in one step, without waiting in between, so two machines
cannot choose the same one. The note is kept until the cache shows the outcome: an answer that got lost may have been
a success, and then the address is taken. What counts is written in the provider's objects; after a restart they are
all read before the first choice.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from butler.api.objects import Key, key_of, namespace_of
from butler.kube.errors import AlreadyExists, ApiError, NotFound
from butler.kube.recent_results import RecentResults
from butler.local.world import addresses, kinds, machine_objects
from butler.local.world.machine_status import address_of, internal_address
from butler.local.world.view import cluster_key, owner_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.objects import Json
    from butler.kube.cache import Cache
    from butler.kube.resource import Resource
    from butler.local.world.view import WorldView

_TEMPLATE_SECONDS = 10.0
"""Templates are immutable, but one may be deleted and made anew; many machines come at once, though."""
_MOST_TEMPLATES = 2000


class Provisioner:
    def __init__(self, view: WorldView) -> None:
        self._view = view
        self._chosen: dict[Key, tuple[Key, str]] = {}
        self._templates = RecentResults(_TEMPLATE_SECONDS, most=_MOST_TEMPLATES)
        view.machines.index("address", lambda machine: _filed(machine, internal_address(machine)))
        for cache in view.infrastructure_machines.values():
            cache.index("address", lambda machine: _filed(machine, address_of(machine)))

    async def begin(self, machine: Json, cluster: Json) -> tuple[Cache[Json], Json] | None:
        """Clone what the Machine refers to; None while a template is missing or the outcome is not known."""
        view, key = self._view, key_of(machine)
        owner = owner_key(machine, kinds.MACHINE_SETS)
        machine_set = view.sets.get(owner) if owner else None
        cache = view.infrastructure_machines.get(machine["spec"]["infrastructureRef"]["kind"])
        if machine_set is None or cache is None:
            return None
        wanted = machine_set["spec"]["template"]["spec"]
        template = await self._template(
            kinds.MACHINE_TEMPLATES.get(wanted["infrastructureRef"]["kind"]), wanted["infrastructureRef"], machine
        )
        if template is None or not await self._configure(machine, wanted):
            return None
        address = self._choose(machine, cluster, template["spec"]["template"].get("spec") or {})
        body = machine_objects.infrastructure_machine(machine, template, address)
        try:
            made = await view.create(cache, body)
        except AlreadyExists:
            return None  # by an attempt whose answer got lost: the cache is about to hear of it
        except ApiError as error:
            if not error.outcome_unknown:
                self._chosen.pop(key, None)
            raise
        self._chosen.pop(key, None)
        return cache, made

    async def give_address(
        self, machine: Json, cluster: Json, cache: Cache[Json], infrastructure: Json
    ) -> tuple[Json, str | None]:
        """Give an address to a machine that found none when it was made."""
        address = self._choose(machine, cluster, infrastructure["spec"])
        if address is not None:
            patch = {"metadata": {"annotations": {kinds.ADDRESS: address}}}
            infrastructure = await self._view.patch(cache, infrastructure, patch)
            self._chosen.pop(key_of(machine), None)
        return infrastructure, address

    def forget(self, key: Key) -> None:
        self._chosen.pop(key, None)

    def _choose(self, machine: Json, cluster: Json, shape: Json) -> str | None:
        key, scope = key_of(machine), cluster_key(machine)
        if key in self._chosen:
            return self._chosen[key][1]
        found = self._view.infrastructure_cluster(cluster)
        offer = addresses.offered(found[1], shape) if found is not None else None
        address = addresses.choose(
            offer, lambda candidate: self._is_held(candidate, scope if offer else None), key.name
        )
        if address is not None:
            self._chosen[key] = (scope, address)
        return address

    def _is_held(self, address: str, scope: Key | None) -> bool:
        """Whether a machine has an address: one of that cluster, or without a scope any at all."""
        for chosen_in, chosen in self._chosen.values():
            if chosen == address and scope in (None, chosen_in):
                return True
        filed = address if scope is None else (scope, address)
        caches = (self._view.machines, *self._view.infrastructure_machines.values())
        return any(cache.count("address", filed) for cache in caches)

    async def _configure(self, machine: Json, wanted: Json) -> bool:
        """Clone the bootstrap configuration, where there is a template for it; False while that is missing."""
        reference = (wanted.get("bootstrap") or {}).get("configRef")
        if reference is None or reference["kind"] != kinds.KUBEADM_CONFIG_TEMPLATES.kind:
            return True
        template = await self._template(kinds.KUBEADM_CONFIG_TEMPLATES, reference, machine)
        if template is None:
            return False
        with suppress(AlreadyExists):
            await self._view.client.create(kinds.KUBEADM_CONFIGS, machine_objects.bootstrap_config(machine, template))
        return True

    async def _template(self, resource: Resource[Json] | None, reference: Json, machine: Json) -> Json | None:
        if resource is None:
            return None
        key = Key(reference.get("namespace") or namespace_of(machine), reference["name"])
        read = partial(self._view.client.get, resource, key.name, key.namespace)
        try:
            return await self._templates.of((resource.kind, key), read)
        except NotFound:
            return None


def _filed(machine: Json, address: str | None) -> Iterable[object]:
    """An address is looked for everywhere and in one cluster."""
    return () if address is None else (address, (cluster_key(machine), address))
