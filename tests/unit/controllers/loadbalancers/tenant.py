"""A tenant cluster in memory: Services, MetalLB's objects, and a MetalLB that does as the real one does.

Writes to the pool are checked as the API server checks them: an apply or a deletion that names a version is valid only
for that one, and a field that its manager applies no more is gone. MetalLB serves when it is told to (`serve`): those
who ask for an address by name get it, also from a pool that hands out none by itself; all others get the first free
one. A Service whose address left the pool loses it, and that is written down in `moved`, which must stay empty. What it
has handed out it counts in the pool's status, which makes the pool's version another.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from butler.api.objects import version_of
from butler.ipam.addresses import Family, address_text, parse_address
from butler.kube.client import Listed
from butler.rules.loadbalancer.service import POOL, Balancer
from butler.tenant.metallb import NAMESPACE
from butler.tenant.services import Service, read_balancer
from unit.controllers.tenantcluster.management import Json, Management, _typed, refusal
from unit.kube.fake_api import merge

IPAM = "butler-controller/ipam"
READ = "2027-01-15T08:00:{:02}Z"


class Tenant(Management):
    """Used as the client of a tenant."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        """What was written, and Services listed afresh, in order."""
        self.moved: list[tuple[str, str]] = []
        self.metallb_hangs = False
        self.stuck: set[str] = set()
        """Addresses that MetalLB takes for used, by Services that are gone."""
        self.shows_itself = True
        """Whether MetalLB tells when it last read its pools, as newer versions do."""
        self._readings = 0
        self._read: Json = {}
        self.install()

    def install(self) -> None:
        self.unserved.clear()
        self.put("namespaces", {"metadata": {"name": NAMESPACE}})

    def uninstall(self) -> None:
        self.unserved |= {"ipaddresspools", "l2advertisements", "configurationstates"}

    # What is there.

    @property
    def pool(self) -> Json | None:
        return self.find("ipaddresspools", NAMESPACE, POOL)

    @property
    def addresses(self) -> list[str]:
        return list(self.pool["spec"]["addresses"]) if self.pool else []

    @property
    def hands_out(self) -> bool:
        return self.pool is not None and bool(self.pool["spec"]["autoAssign"])

    def balancers(self) -> list[Balancer]:
        return [read_balancer(_service(service)) for service in self.objects.get("services", {}).values()]

    def address_of(self, name: str) -> str | None:
        found = next(balancer for balancer in self.balancers() if balancer.name == name)
        return found.addresses[0] if found.addresses else None

    # What people do.

    def edit_pool(self, **spec: Any) -> None:
        """By hand, so that the fields are the editor's from now on."""
        assert self.pool is not None
        body = copy.deepcopy(self.pool)
        body["spec"].update(spec)
        ours: Json = {f"f:{name}": {} for name in body["spec"] if name not in spec}
        fields = {"f:spec": ours}
        body["metadata"]["managedFields"] = [{"manager": IPAM, "operation": "Apply", "fieldsV1": fields}]
        self.put("ipaddresspools", body)

    def add_service(self, name: str, *, ip: str = "", asks: str = "", **more: Any) -> None:
        body: Json = {
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], **more},
        }
        if asks:
            body["metadata"]["annotations"] = {"metallb.io/loadBalancerIPs": asks}
        if ip:
            body["status"] = {"loadBalancer": {"ingress": [{"ip": ip}]}}
        self.put("services", body)

    def remove_service(self, name: str) -> None:
        self.drop("services", "shop", name)

    # MetalLB.

    def serve(self) -> bool:
        """One pass of MetalLB over all Services; whether it changed anything."""
        if self.metallb_hangs or self.unserved:
            return False
        self._take_in()
        spec = self._read.get("spec", {"addresses": [], "autoAssign": False})
        free, changed = _all_of(spec["addresses"]), False
        for body in self.objects.get("services", {}).values():
            found = read_balancer(_service(body))
            if found.addresses and found.addresses[0] not in free:
                self.moved.append((found.name, found.addresses[0]))
                changed = self._give(body, None)
        taken = {address for balancer in self.balancers() for address in balancer.addresses} | self.stuck
        for body in list(self.objects.get("services", {}).values()):
            found = read_balancer(_service(body))
            if found.addresses or found.class_name:
                continue
            choice = found.asks or (free if spec["autoAssign"] else ())
            address = next((text for text in choice if text in free and text not in taken), None)
            if address is not None:
                taken.add(address)
                changed = self._give(body, address)
        self._count(free)
        return changed

    def _take_in(self) -> None:
        pool = self.pool or {}
        if pool.get("spec") == self._read.get("spec"):
            return
        self._read = copy.deepcopy(pool)
        if self.shows_itself:
            self._readings += 1
            condition = {
                "type": "poolReconcilerValid",
                "status": "True",
                "lastTransitionTime": READ.format(self._readings),
            }
            state = {"metadata": {"name": "controller", "namespace": NAMESPACE}, "status": {"conditions": [condition]}}
            self.put("configurationstates", state)

    def _count(self, free: list[str]) -> None:
        taken = ({address for balancer in self.balancers() for address in balancer.addresses} | self.stuck) & set(free)
        status = {"assignedIPv4": len(taken), "availableIPv4": len(free) - len(taken)}
        if self.shows_itself and self.pool is not None and self.pool.get("status") != status:
            self.put("ipaddresspools", {**self.pool, "status": status})

    def _give(self, body: Json, address: str | None) -> bool:
        self.put("services", {**body, "status": {"loadBalancer": {"ingress": [{"ip": address}] if address else []}}})
        return True

    # The client.

    async def list(self, resource: Any, namespace: str = "", **_: Any) -> Listed[Any]:
        self._ask("list", resource)
        self.log.append(f"list {resource.plural}")
        found = self.objects.get(resource.plural, {}).values()
        return Listed([_service(key) for key in found], str(self._version))

    async def create(self, resource: Any, obj: Any, *, field_manager: str = "", **more: Any) -> Any:
        written = await super().create(resource, obj, **more)
        written["metadata"]["managedFields"] = [
            {"manager": field_manager, "operation": "Update", "fieldsV1": _fields(obj)}
        ]
        self._wrote("create", resource, obj)
        return _typed(resource, self.put(resource.plural, written))

    async def apply(self, resource: Any, obj: Any, *, field_manager: str = "", **_: Any) -> Any:
        self._ask("apply", resource)
        meta = obj["metadata"]
        old = self.find(resource.plural, meta["namespace"], meta["name"]) or {}
        self._insist(old, meta.get("uid"), meta.get("resourceVersion"))
        kept = copy.deepcopy(old)
        kept.get("metadata", {}).pop("annotations", None)  # only Butler writes annotations there
        new = merge(kept, obj)
        new["metadata"]["managedFields"] = [{"manager": field_manager, "operation": "Apply", "fieldsV1": _fields(obj)}]
        self._wrote("apply", resource, obj)
        return _typed(resource, self.put(resource.plural, new))

    async def delete(self, resource: Any, name: str, namespace: str = "", *, uid: str, **more: Any) -> Json:
        old = self.find(resource.plural, namespace, name)
        if old is not None:
            self._insist(old, uid, more.get("resource_version"))
        self.log.append(f"delete {resource.plural}")
        return await super().delete(resource, name, namespace, uid=uid)

    def _insist(self, old: Json, uid: str | None, version: str | None) -> None:
        if uid and (not old or old["metadata"]["uid"] != uid or version_of(old) != version):
            raise refusal(409, "Conflict", "the object has been modified")

    def _wrote(self, verb: str, resource: Any, obj: Json) -> None:
        if resource.plural == "ipaddresspools":
            spec = obj["spec"]
            self.log.append(f"{verb} pool {len(spec['addresses'])}{'' if spec['autoAssign'] else ' held back'}")


def _service(body: Json) -> Service:
    return msgspec.json.decode(msgspec.json.encode(body), type=Service)


def _fields(obj: Json) -> Json:
    notes: Json = {f"f:{name}": {} for name in obj["metadata"].get("annotations", {})}
    return {"f:spec": {f"f:{name}": {} for name in obj["spec"]}, "f:metadata": {"f:annotations": notes}}


def _all_of(entries: list[str]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        first, last = (parse_address(part)[1] for part in entry.split("-"))
        found.extend(address_text(value, Family.V4) for value in range(first, last + 1))
    return found
