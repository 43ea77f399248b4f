"""What `butleradm ipam plan` says is what the controllers then do: random states on a server with controllers.

Each state has pools of its own, and all states are worked on side by side. Within a pool one request follows the
other: two that come in the same second are served in an order that cannot be foreseen.
"""

from __future__ import annotations

import base64
import json
from random import Random
from typing import TYPE_CHECKING, Any

from blueprints import SETTINGS
from cli.terminal import eventually
from unit.providers import given
from unit.reports.random_estates import HOME, make

if TYPE_CHECKING:
    from cli.terminal import Cli
    from control_planes import ControlPlane
    from unit.reports.random_estates import Json, Made

API = "butler.butlerlabs.dev/v1alpha1"
REQUESTS = 6
TENANTS = 4


def test_single_requests_get_the_ranges_that_were_planned(plane: ControlPlane, adm: Cli) -> None:
    random = Random(6)
    states = [make(random, number, f"-{number}", waiting=False) for number in range(7)]
    _apply(plane, states)
    planned: dict[str, list[Json]] = {}
    for pool in (obj["metadata"]["name"] for made in states for obj in made.pools):
        counts = [str(random.choice([1, 2, 3, 5, 8, 13, 21])) for _ in range(REQUESTS)]
        asked = [word for count in counts for word in ("--count", count)]
        planned[pool] = _planned(adm, "--pool", pool, *asked)["requests"]
    for place in range(REQUESTS):
        for pool, requests in planned.items():
            _create(plane, "ipallocations", _request(f"{pool}-asks-{place}", pool, requests[place]["count"]))
        decided = eventually(lambda place=place: _decided(plane, f"-asks-{place}", len(planned)), "all are answered")
        for name, status in decided.items():
            pool = name.removesuffix(f"-asks-{place}")
            plan = planned[pool][place]
            assert _range(status) == plan["range"], f"{name}: {plan}"
            if plan["range"] is None:
                ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
                assert (ready["reason"], ready["message"]) == (plan["reason"], plan["message"]), name
    outcomes = [request["range"] is None for requests in planned.values() for request in requests]
    assert 10 < sum(outcomes) < len(outcomes) - 10, "too few of either kind to show anything"


def test_tenants_get_the_ranges_that_were_planned(plane: ControlPlane, adm: Cli) -> None:
    random = Random(66)
    states = [make(random, 100 + number, f"-t{number}", waiting=False, apart=True) for number in range(6)]
    _apply(plane, states)
    secret = {key: base64.b64encode(value).decode() for key, value in _login().items()}
    _create(plane, "secrets", {"metadata": {"name": "login", "namespace": HOME}, "data": secret}, "/api/v1")
    place = plane.fresh_namespace("team")
    for made in states:
        settings = {**SETTINGS["proxmox"], "endpoint": "https://127.0.0.1:9"}
        made.provider["spec"] |= {"credentialsRef": {"name": "login"}, "proxmox": settings}
        _create(plane, "providerconfigs", _bare(made.provider))
    eventually(lambda: _ready(plane) >= len(states), "all providers are ready")
    plans, shapes = [], [(random.choice([1, 3, 6]), random.choice([None, 4, 9])) for _ in states]
    for made, (nodes, balancers) in zip(states, shapes, strict=True):
        more = ["--lb", str(balancers)] if balancers else []
        asked = ["--tenants", str(TENANTS), "--nodes", str(nodes), *more]
        plan = _planned(adm, *asked, "--provider", made.provider["metadata"]["name"])
        assert not plan["orderByChance"]
        plans.append(plan["tenants"])
    for number in range(TENANTS):
        for state, made in enumerate(states):
            nodes, balancers = shapes[state]
            spec: Json = {
                "kubernetesVersion": "v1.32.4",
                "workers": {"replicas": nodes},
                "providerConfigRef": {"name": made.provider["metadata"]["name"]},
                "networking": {"lbPoolSize": balancers} if balancers else {},
            }
            _create(
                plane, "tenantclusters", {"metadata": {"name": f"s{state}-{number}", "namespace": place}, "spec": spec}
            )
        for state, tenants in enumerate(plans):
            eventually(
                lambda s=state, n=number, t=tenants: _came_true(plane, place, f"s{s}-{n}", t[n]),
                f"s{state}-{number} gets {tenants[number]}",
            )
    outcomes = [tenant["fits"] for tenants in plans for tenant in tenants]
    assert 2 < sum(outcomes) < len(outcomes) - 2, "too few of either kind to show anything"


def _came_true(plane: ControlPlane, place: str, name: str, planned: Json) -> bool:
    """Whether a cluster holds exactly what was planned, and says what was planned about the rest."""
    blocks = {
        obj["spec"]["type"]: (obj["spec"]["poolRef"]["name"], _range(obj.get("status", {})))
        for obj in _list(plane, "ipallocations", HOME)
        if obj["spec"]["tenantClusterRef"]["name"] == name
    }
    if blocks != {block["type"]: (block["pool"], block["range"]) for block in planned["blocks"]}:
        return False
    if planned["fits"]:
        return True
    _, cluster = plane.request("GET", f"/apis/{API}/namespaces/{place}/tenantclusters/{name}")
    said = [
        condition["message"]
        for condition in cluster.get("status", {}).get("conditions", ())
        if condition["status"] == "False"
    ]
    return planned["message"] in said


# The server.


def _planned(adm: Cli, *arguments: str) -> Any:
    said = adm.run("ipam", "plan", *arguments, "-o", "json")
    answer = json.loads(said.out)
    assert said.code == (0 if answer["fits"] else 8), str(said)
    return answer


def _apply(plane: ControlPlane, states: list[Made]) -> None:
    """Pools, and everything that is held in them."""
    for made in states:
        for pool in made.pools:
            _create(plane, "networkpools", _bare(pool))
        for held in made.allocations:
            _create(plane, "ipallocations", _bare(held))
    pools = {obj["metadata"]["name"] for made in states for obj in made.pools}
    names = {allocation["metadata"]["name"] for made in states for allocation in made.allocations}

    def settled() -> bool:
        held = {obj["metadata"]["name"] for obj in _list(plane, "ipallocations", HOME) if _range(obj.get("status", {}))}
        able = {obj["metadata"]["name"] for obj in _list(plane, "networkpools", HOME) if "totalIPs" in obj["status"]}
        return names <= held and pools <= able

    eventually(settled, "the states are as they were made")


def _bare(obj: Json) -> Json:
    meta = {key: obj["metadata"][key] for key in ("name", "namespace")}
    return {**{key: obj[key] for key in ("apiVersion", "kind", "spec")}, "metadata": meta}


def _create(plane: ControlPlane, plural: str, obj: Json, group: str = f"/apis/{API}") -> None:
    code, answer = plane.request(
        "POST", f"{group}/namespaces/{obj['metadata']['namespace']}/{plural}", _typed(plural, obj)
    )
    assert code == 201, answer["message"]


def _typed(plural: str, obj: Json) -> Json:
    kinds = {"tenantclusters": "TenantCluster", "ipallocations": "IPAllocation"}
    return {"apiVersion": API, "kind": kinds[plural], **obj} if plural in kinds else obj


def _list(plane: ControlPlane, plural: str, namespace: str) -> list[Json]:
    code, answer = plane.request("GET", f"/apis/{API}/namespaces/{namespace}/{plural}")
    assert code == 200, answer
    return list(answer["items"])


def _ready(plane: ControlPlane) -> int:
    return sum(bool(obj.get("status", {}).get("ready")) for obj in _list(plane, "providerconfigs", HOME))


def _decided(plane: ControlPlane, suffix: str, wanted: int) -> dict[str, Json]:
    found = {
        obj["metadata"]["name"]: obj["status"]
        for obj in _list(plane, "ipallocations", HOME)
        if obj["metadata"]["name"].endswith(suffix) and obj.get("status", {}).get("phase") in ("Allocated", "Failed")
    }
    return found if len(found) == wanted else {}


def _request(name: str, pool: str, count: int) -> Json:
    spec = {
        "poolRef": {"name": pool},
        "tenantClusterRef": {"name": name, "namespace": "elsewhere"},
        "type": "loadbalancer",
        "count": count,
    }
    return {"metadata": {"name": name, "namespace": HOME}, "spec": spec}


def _range(status: Json) -> Json | None:
    if status.get("phase") != "Allocated":
        return None
    return {"start": status["startAddress"], "end": status["endAddress"], "count": status["allocatedCount"]}


def _login() -> dict[str, bytes]:
    return given.secret("proxmox", username=b"butler@pve!capi", password=given.UUID.encode())
