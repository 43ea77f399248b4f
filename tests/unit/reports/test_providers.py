"""What is told of a provider, and what is found wrong with one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.api.conditions import with_condition
from butler.api.meta import ConditionStatus
from butler.api.networkpool import ReservedBlock
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfigStatus
from butler.reports.provider.findings import IssueSeverity, ProviderIssue, SecretSeen, findings, findings_json, is_bad
from butler.reports.provider.summary import provider_view
from unit.controllers.tenantcluster.values import HOME, NOW, allocation, cluster, pool, provider

TOKEN = {"username": b"butler@pve!token", "password": b"11111111-2222-3333-4444-555555555555"}
PROXMOX = {"endpoint": "https://pve.example.com:8006", "nodes": ["pve1"], "storage": "ceph", "templateID": 9000}
SECRET = SecretSeen(Key(HOME, "lab"), TOKEN)


def vlan40(**options: Any) -> Any:
    """A pool that keeps its gateway back."""
    made = pool(**options)
    spec = msgspec.structs.replace(made.spec, reserved=(ReservedBlock(cidr="10.40.0.0/30"),))
    return msgspec.structs.replace(made, spec=spec)


def lab(*, dns: tuple[str, ...] = ("10.40.0.2",), **options: Any) -> Any:
    made = provider(proxmox=PROXMOX, credentialsRef={"name": "lab"}, **options)
    network = msgspec.structs.replace(made.spec.network, dns_servers=dns, subnet="vmbr0")
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, network=network))


def judged(
    config: Any = None, pools: Any = None, secret: SecretSeen = SECRET, **options: Any
) -> list[tuple[str, str, str]]:
    every = {item.metadata.name: item for item in ((vlan40(),) if pools is None else pools)}
    allocations = options.pop("allocations", ())
    found = findings(config or lab(), every, allocations, secret, HOME, stored=options.pop("stored", False))
    return [(finding.severity.value, finding.about, finding.message) for finding in found]


def test_room_is_counted_by_the_pools_themselves_and_pools_come_in_their_order() -> None:
    refs = ({"name": "late", "priority": 5, "types": ["nodes"]}, {"name": "vlan40", "priority": 1})
    pools = (pool("vlan40", "10.40.0.0/28", defaults=(3, 2)),)
    held = [allocation("web-nodes", "nodes", 3, start="10.40.0.1")]
    clusters = [cluster(), cluster("other", on="elsewhere"), cluster("none", on=None)]
    found = provider_view(lab(pools=refs), pools, held, clusters, {Key(HOME, "lab")}, HOME)
    assert found.room == 2, "11 free, five for each"
    assert [(pool_use.name, pool_use.purpose, pool_use.pool is None) for pool_use in found.pools] == [
        ("vlan40", "nodes and load balancers", False),
        ("late", "nodes", True),
    ]
    assert found.clusters == ("team-a/none", "team-a/web"), "one that names none is on the only one there is"


def test_without_allocations_the_room_is_what_the_status_says() -> None:
    assert provider_view(lab(), (), None, None, (), HOME).room is None
    assert provider_view(lab(why="no"), (), None, None, (), HOME).clusters is None


def test_a_provider_that_is_as_it_should_be_has_no_findings() -> None:
    assert judged() == []


@pytest.mark.parametrize(
    ("config", "options", "wanted"),
    [
        (lab(gateway="10.9.0.1"), {}, ("problem", "spec.network.gateway", "10.9.0.1 lies in none of the pools")),
        (lab(dns=()), {}, ("problem", "spec.network.dnsServers", "no cluster could be built: machines on Proxmox")),
        (lab(gateway=None), {}, ("warning", "spec.network", "spec.network.gateway is not set")),
        (lab(), {"pools": ()}, ("problem", "spec.network.poolRefs", "no pool for nodes exists")),
        (lab(), {"pools": ()}, ("warning", "spec.network.poolRefs[0]", "there is no NetworkPool vlan40")),
        (lab(), {"pools": (pool(ready=False),)}, ("problem", "spec.network.poolRefs", "vlan40 (Test) hands out")),
        (
            lab(),
            {"allocations": [allocation("all", "nodes", 254, start="10.40.0.1")]},
            ("warning", "spec.network.poolRefs", "no room for another tenant"),
        ),
        (lab(), {"secret": SecretSeen(Key(HOME, "lab"))}, ("problem", "Secret butler-system/lab", "does not exist")),
        (lab(), {"secret": SecretSeen(Key(HOME, "lab"), hidden=True)}, ("note", "Secret butler-system/lab", "may not")),
        (
            lab(),
            {"secret": SecretSeen(Key(HOME, "lab"), {**TOKEN, "password": b"hunter2"})},
            ("problem", "Secret butler-system/lab", "password must be the secret of that API token"),
        ),
    ],
)  # fmt: skip
def test_each_thing_that_is_wrong_is_found(config: Any, options: Any, wanted: tuple[str, str, str]) -> None:
    found = judged(config, **options)
    assert any(pair[:2] == wanted[:2] and wanted[2] in pair[2] for pair in found), found
    assert "hunter2" not in str(found)


def test_pools_that_may_not_be_read_are_a_note_and_not_a_finding() -> None:
    found = findings(lab(), None, None, SECRET, HOME, stored=False)
    assert [finding.severity for finding in found] == [IssueSeverity.NOTE]
    assert not is_bad(found)


@pytest.mark.parametrize(
    ("kind", "status", "reason", "severity"),
    [
        ("Reachable", ConditionStatus.FALSE, "Unreachable", "warning"),
        ("Reachable", ConditionStatus.UNKNOWN, "Asking", "note"),
        ("CredentialsValid", ConditionStatus.FALSE, "Refused", "problem"),
    ],
)
def test_what_butler_found_counts_for_a_provider_that_is_stored(
    kind: str, status: ConditionStatus, reason: str, severity: str
) -> None:
    conditions = with_condition((), type=kind, status=status, reason=reason, message="timeout", now=NOW)
    config = msgspec.structs.replace(lab(), status=ProviderConfigStatus(ready=True, conditions=conditions))
    assert any(pair[0] == severity and "timeout" in pair[2] for pair in judged(config, stored=True))
    assert judged(config, stored=False) == []


def test_the_answer_for_programs_says_whether_it_is_valid() -> None:
    assert findings_json("lab", [ProviderIssue(IssueSeverity.NOTE, "x", "y")])["valid"] is True
    answer = findings_json("lab", [ProviderIssue(IssueSeverity.WARNING, "a", "b")])
    assert answer == {
        "provider": "lab",
        "valid": False,
        "findings": [{"severity": "warning", "about": "a", "message": "b"}],
    }
