"""Every command where there is nothing yet: what lists says so and what to do next, what takes a name does not find it.

The control plane of this module stays empty: its tests only look.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cli.every import CALLS, covers_all, every, words
from cli.terminal import Cli

if TYPE_CHECKING:
    from control_planes import ControlPlane


class Nothing(NamedTuple):
    """What a command says where there is nothing, on stderr, and under which key JSON has its empty list."""

    says: str
    key: str = "items"
    arguments: str = ""


NO_POOLS = "There are no pools in namespace butler-system. `butleradm pool create` makes one."
EMPTY = {
    "butleradm pool list": Nothing(NO_POOLS),
    "butleradm pool overlaps": Nothing("There is nothing to look at yet: `butleradm pool create` makes", "findings"),
    "butleradm allocation list": Nothing("There are no allocations in namespace butler-system. Tenant clusters ask"),
    "butleradm ipam advise": Nothing(NO_POOLS, "pools"),
    "butleradm ipam forecast": Nothing(NO_POOLS, "pools"),
    "butleradm ipam fsck": Nothing("There is nothing to check yet: `butleradm pool create` makes a pool.", "findings"),
    "butleradm ipam export": Nothing(
        "There are no allocations with addresses in namespace butler-system", "allocations"
    ),
    "butleradm provider list": Nothing(
        "There are no providers in namespace butler-system: `butleradm provider create --example harvester` prints"
    ),
    "butleradm tenant list": Nothing("There are no tenants in any namespace: `butlerctl cluster create` makes one."),
    "butlerctl cluster list": Nothing("There are no clusters in namespace default: `butlerctl cluster create` makes"),
}
"""What lists or looks at all there is: it succeeds."""
POOL = "there is no NetworkPool p in namespace butler-system: `butleradm pool list -A` shows all"
ALLOCATION = "there is no IPAllocation a in namespace butler-system: `butleradm allocation list -A` shows all"
PROVIDER = "there is no ProviderConfig p in namespace butler-system: `butleradm provider list -A` shows all"
CLUSTER = "there is no TenantCluster x in namespace default: `butlerctl cluster list -A` shows all"
NOT_FOUND = {
    "butleradm pool get": POOL,
    "butleradm pool map": POOL,
    "butleradm pool free": POOL,
    "butleradm pool edit": POOL,
    "butleradm pool grow": POOL,
    "butleradm pool reserve": POOL,
    "butleradm pool delete": POOL,
    "butleradm allocation get": ALLOCATION,
    "butleradm allocation create": POOL,
    "butleradm allocation pin": POOL,
    "butleradm allocation release": ALLOCATION,
    "butleradm ipam who": "10.3.0.1 is unknown: there are no pools yet; `butleradm pool create` makes one",
    "butleradm ipam import": "there is no TenantCluster t/x: for a cluster that Butler does not know, say",
    "butleradm provider get": PROVIDER,
    "butleradm provider validate": PROVIDER,
    "butleradm tenant get": "there is no TenantCluster x in namespace t: `butlerctl cluster list -A` shows all",
    "butlerctl cluster get": CLUSTER,
    "butlerctl cluster scale": CLUSTER,
    "butlerctl cluster upgrade": CLUSTER,
    "butlerctl cluster delete": CLUSTER,
    "butlerctl cluster kubeconfig": CLUSTER,
    "butlerctl cluster events": CLUSTER,
    "butlerctl cluster addresses": CLUSTER,
}
"""What takes a name: exit code 3, with the call of every.py."""
OTHERWISE = {
    "butleradm pool create": "makes the first one",
    "butleradm provider create": "makes the first one",
    "butlerctl cluster create": "is refused without a provider, see below",
    "butleradm ipam plan": "is refused without a place for tenants, see below",
    "butleradm doctor": "finds that there are none, see below",
    "butleradm server run": "works on whatever there is",
    "butleradm server link": "makes one",
    "butleradm server password": "makes one",
    "butleradm crds": "asks no API server",
    "butleradm version": "asks nothing that could be empty",
    "butleradm completion": "asks no API server",
    "butleradm controller run": "works on whatever there is",
    "butleradm local up": "starts with nothing",
    "butleradm local world": "starts with nothing",
    "butleradm local status": "test_local.py: nothing there",
    "butleradm local down": "test_local.py: nothing runs",
    "butleradm local reset": "test_local.py: nothing there",
    "butlerctl context list": "test_context.py: no contexts",
    "butlerctl context use": "test_context.py: no such context",
    "butlerctl context namespace": "test_context.py: no current context",
    "butlerctl completion": "asks no API server",
    "butlerctl version": "asks nothing that could be empty",
}


def test_no_command_is_forgotten() -> None:
    covers_all(EMPTY, NOT_FOUND, OTHERWISE)


def _formats(call: str) -> set[str]:
    """Those of -o that a command knows, as its help says."""
    options = [param for param in every()[call].params if param.name == "output"]
    said = str(getattr(options[0], "help", "")) if options else ""
    return {part.strip().partition(" ")[0] for part in said.split(",")}


@pytest.mark.parametrize("call", EMPTY)
def test_what_lists_says_that_there_is_nothing_and_what_to_do(call: str, plane: ControlPlane) -> None:
    nothing, (program, typed) = EMPTY[call], words(call, EMPTY[call].arguments)
    person, formats = Cli(plane.kubeconfig, program), _formats(call)
    said = person.run(*typed)
    assert said.code == 0, str(said)
    told = [line for line in said.err.splitlines() if "reading pools" not in line]
    assert len(told) == 1, f"one sentence: {said}"
    assert told[0].startswith(nothing.says), str(said)
    assert "json" in formats
    assert json.loads(person(*typed, "-o", "json"))[nothing.key] == []
    if "name" in formats:
        assert person(*typed, "-o", "name") == ""
    if "csv" in formats:
        (head,) = csv.reader(io.StringIO(person(*typed, "-o", "csv")))
        assert len(head) > 2


@pytest.mark.parametrize("call", NOT_FOUND)
def test_what_takes_a_name_does_not_find_it(call: str, plane: ControlPlane) -> None:
    program, typed = words(call, CALLS[call])
    said = Cli(plane.kubeconfig, program, EDITOR="true").refused(3, *typed)
    assert said.startswith(NOT_FOUND[call]), said


def test_what_needs_a_provider_says_how_to_come_by_one(adm: Cli, ctl: Cli) -> None:
    assert "name pools with --pool, or create a ProviderConfig" in adm.refused(1, "ipam", "plan", "--tenants", "1")
    refused = ctl.refused(1, "cluster", "create", "x", "--kubernetes-version", "v1.33.2")
    assert "create one in namespace butler-system" in refused


def test_the_doctor_is_not_worried_and_says_what_comes_next(adm: Cli) -> None:
    checks = {check["check"]: check for check in adm.json("doctor")["checks"]}
    assert (checks["Pools"]["result"], checks["Providers"]["result"]) == ("WARN", "WARN")
    assert checks["Pools"]["todo"] == "`butleradm pool create` makes one"
