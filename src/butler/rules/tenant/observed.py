"""What Cluster API and Steward say of a cluster, in the few facts that matter here. Pure.

Their objects are foreign: any field may be missing or of a shape that a newer version gave it. What cannot be read
counts as not said, and nothing is passed on that our own status could not hold: one absurd value in it, and the API
server would refuse the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.rules.machines import MachineAddresses, read_machine
from butler.rules.tenant.blueprint import Endpoint
from butler.rules.tenant.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.objects import Json

NAMED_AT_MOST = 3
"""How many machines a message names; the rest is counted."""
LONGEST_MESSAGE = 1024
LONGEST_NAME = 253
LONGEST_VERSION = 64
MOST_NODES = 5000
LARGEST_NUMBER = 2**31 - 1
LARGEST_PORT = 65535
_FALSE_IS_GOOD = frozenset({"Paused", "Deleting", "ScalingUp", "ScalingDown", "RollingOut", "Remediating"})
"""Conditions of Cluster API that are False when all is well."""


@dataclass(frozen=True, slots=True)
class ControlPlaneSeen:
    """The hosted control plane."""

    ready: bool = False
    version: str | None = None
    """What it runs, once it runs."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class WorkersSeen:
    """The machines."""

    desired: int = 0
    ready: int = 0
    settled: bool = False
    """All machines are there, ready and of the newest template, and none is left over."""
    version: str | None = None
    """What the machines are told to run."""
    oldest: str | None = None
    """What the oldest of the machines runs."""
    nodes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """A sentence for each machine that failed for good."""
    obstacles: tuple[str, ...] = ()
    """A sentence for each machine that says what keeps it from coming up."""
    machines: int = 0
    """How many machines exist, those that are going included."""
    addresses: tuple[MachineAddresses, ...] = ()
    """Each of them with the addresses that it reports."""


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """Everything together."""

    infrastructure_ready: bool = False
    infrastructure_message: str = ""
    endpoint: Endpoint | None = None
    control_plane: ControlPlaneSeen = ControlPlaneSeen()
    workers: WorkersSeen = WorkersSeen()
    exists: bool = False
    """Whether there is a Cluster at all."""


NOTHING_SEEN = ObservedCluster()


def see(
    cluster: Json | None,
    control_plane: Json | None,
    deployment: Json | None,
    machines: Iterable[Json],
) -> ObservedCluster:
    """The facts out of the objects that there are."""
    status = _dict(cluster, "status")
    return ObservedCluster(
        infrastructure_ready=status.get("infrastructureReady") is True,
        infrastructure_message=_text(status, "failureMessage") or _problem(cluster, "InfrastructureReady"),
        endpoint=endpoint_of(cluster),
        control_plane=_control_plane(cluster, control_plane),
        workers=_workers(deployment, list(machines)),
        exists=cluster is not None,
    )


def endpoint_of(cluster: Json | None) -> Endpoint | None:
    """Where the API server is, by the word of Cluster API's Cluster; None while it does not say."""
    given = _dict(_dict(cluster, "spec"), "controlPlaneEndpoint")
    host, port = _name(given, "host"), _number(given, "port")
    return Endpoint(host, port) if host and 0 < port <= LARGEST_PORT else None


def _control_plane(cluster: Json | None, control_plane: Json | None) -> ControlPlaneSeen:
    status = _dict(control_plane, "status")
    ready = status.get("ready") is True and _dict(cluster, "status").get("controlPlaneReady") is True
    return ControlPlaneSeen(
        ready=ready,
        version=_version(status),
        message=_text(status, "failureMessage") or _problem(control_plane),
    )


def _workers(deployment: Json | None, machines: list[Json]) -> WorkersSeen:
    spec, status = _dict(deployment, "spec"), _dict(deployment, "status")
    desired = _number(spec, "replicas")
    generation = _number(_dict(deployment, "metadata"), "generation")
    counted = [_number(status, name) for name in ("replicas", "readyReplicas", "updatedReplicas")]
    staying = [machine for machine in machines if not _dict(machine, "metadata").get("deletionTimestamp")]
    nodes = (_name(_dict(_dict(machine, "status"), "nodeRef"), "name") for machine in staying)
    running = [version for machine in machines if (version := _version(_dict(machine, "spec")))]
    failures = {_called(machine): said for machine in staying if (said := _failure(machine))}
    obstacles = {
        _called(machine): said
        for machine in staying
        if (said := _obstacle(machine)) and _called(machine) not in failures
    }
    return WorkersSeen(
        desired=desired,
        ready=_number(status, "readyReplicas"),
        settled=deployment is not None
        and _number(status, "observedGeneration") >= generation
        and counted == [desired] * 3
        and len(machines) == desired,
        version=_version(_dict(_dict(spec, "template"), "spec")),
        oldest=min(running, key=lambda version: Version.read(version) or (), default=None),
        nodes=tuple(sorted({name for name in nodes if name}))[:MOST_NODES],
        failures=tuple(f"{name}: {said}" for name, said in sorted(failures.items())),
        obstacles=tuple(f"{name}: {said}" for name, said in sorted(obstacles.items())),
        machines=len(machines),
        addresses=tuple(map(read_machine, machines)),
    )


def _called(machine: Json) -> str:
    return _name(_dict(machine, "metadata"), "name") or "a machine without a name"


def _failure(machine: Json) -> str:
    status = _dict(machine, "status")
    failed = "failed" if status.get("phase") == "Failed" else ""
    return _text(status, "failureMessage") or (failed and (_obstacle(machine) or failed))


def _obstacle(machine: Json) -> str:
    """What a machine says is wrong with it, beyond that it takes its time."""
    for condition in _conditions(machine):
        if condition.get("status") == "False" and condition.get("severity") in ("Error", "Warning"):
            said = _text(condition, "message") or _text(condition, "reason")
            if said:
                return said
    return ""


def in_short(sentences: tuple[str, ...]) -> str:
    """The first few of them, and how many more there are."""
    more = len(sentences) - NAMED_AT_MOST
    return "; ".join(sentences[:NAMED_AT_MOST]) + (f"; and {more} more" if more > 0 else "")


# Reading what may be anything.


def _conditions(obj: Json | None) -> list[Json]:
    found = _dict(obj, "status").get("conditions")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _problem(obj: Json | None, only: str | None = None) -> str:
    """What the first condition that does not hold says; of one type only, where that is given."""
    for condition in _conditions(obj):
        kind = condition.get("type")
        counts = kind == only if only else isinstance(kind, str) and kind not in _FALSE_IS_GOOD
        if counts and condition.get("status") == "False" and (said := _text(condition, "message")):
            return said
    return ""


def _dict(obj: Json | None, name: str) -> Json:
    found = obj.get(name) if obj is not None else None
    return found if isinstance(found, dict) else {}


def _number(obj: Json, name: str) -> int:
    found = obj.get(name)
    is_one = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= LARGEST_NUMBER
    return int(found or 0) if is_one else 0


def _text(obj: Json, name: str) -> str:
    found = obj.get(name)
    return found[:LONGEST_MESSAGE] if isinstance(found, str) else ""


def _name(obj: Json, name: str) -> str:
    found = obj.get(name)
    return found if isinstance(found, str) and len(found) <= LONGEST_NAME else ""


def _version(obj: Json) -> str | None:
    """A version, if it is one."""
    found = obj.get("version")
    is_one = isinstance(found, str) and len(found) <= LONGEST_VERSION and Version.read(found) is not None
    return str(found) if is_one else None
