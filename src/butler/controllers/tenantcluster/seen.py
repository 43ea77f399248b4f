"""What Cluster API and Steward say of a cluster, in the few facts that matter here. Pure.

Their objects are foreign: any field may be missing or of a shape that a newer version gave it. What cannot be read
counts as not said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butler.capi.blueprint import Endpoint
from butler.kube.objects import condition_of, is_being_deleted, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.kube.resource import Json

NAMED_AT_MOST = 3
"""How many machines a message names; the rest is counted."""


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
    nodes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    machines: int = 0
    """How many machines exist, those that are going included."""
    templates: frozenset[tuple[str, str]] = frozenset()
    """(kind, name) of the templates that machines were made from."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything together."""

    infrastructure_ready: bool = False
    infrastructure_message: str = ""
    endpoint: Endpoint | None = None
    control_plane: ControlPlaneSeen = ControlPlaneSeen()
    workers: WorkersSeen = WorkersSeen()
    exists: bool = False
    """Whether there is a Cluster at all."""


NOTHING_SEEN = Seen()


def see(
    cluster: Json | None,
    control_plane: Json | None,
    deployment: Json | None,
    machines: Iterable[Json],
) -> Seen:
    """The facts out of the objects that there are."""
    status = _dict(cluster, "status")
    failure = status.get("failureMessage") or _condition_message(cluster, "InfrastructureReady")
    return Seen(
        infrastructure_ready=bool(status.get("infrastructureReady")),
        infrastructure_message=str(failure or ""),
        endpoint=_endpoint(cluster),
        control_plane=_control_plane(cluster, control_plane),
        workers=_workers(deployment, list(machines)),
        exists=cluster is not None,
    )


def _endpoint(cluster: Json | None) -> Endpoint | None:
    given = _dict(_dict(cluster, "spec"), "controlPlaneEndpoint")
    host, port = given.get("host"), given.get("port")
    return Endpoint(host, port) if isinstance(host, str) and host and isinstance(port, int) and port else None


def _control_plane(cluster: Json | None, control_plane: Json | None) -> ControlPlaneSeen:
    status = _dict(control_plane, "status")
    version = status.get("version")
    ready = bool(status.get("ready")) and bool(_dict(cluster, "status").get("controlPlaneReady"))
    return ControlPlaneSeen(
        ready=ready,
        version=version if isinstance(version, str) and version else None,
        message=str(status.get("failureMessage") or _first_problem(control_plane) or ""),
    )


def _workers(deployment: Json | None, machines: list[Json]) -> WorkersSeen:
    spec, status = _dict(deployment, "spec"), _dict(deployment, "status")
    desired = _number(spec, "replicas")
    generation = _number(_dict(deployment, "metadata"), "generation")
    counted = [_number(status, name) for name in ("replicas", "readyReplicas", "updatedReplicas")]
    staying = [machine for machine in machines if not is_being_deleted(machine)]
    nodes = (_dict(_dict(machine, "status"), "nodeRef").get("name") for machine in staying)
    version = _dict(_dict(spec, "template"), "spec").get("version")
    templates = set()
    for machine in machines:
        wanted = _dict(machine, "spec")
        for reference in (wanted.get("infrastructureRef"), _dict(wanted, "bootstrap").get("configRef")):
            made_from = _made_from(reference)
            templates |= {made_from} if made_from else set()
    return WorkersSeen(
        desired=desired,
        ready=_number(status, "readyReplicas"),
        settled=deployment is not None
        and _number(status, "observedGeneration") >= generation
        and counted == [desired] * 3
        and len(machines) == desired,
        version=version if isinstance(version, str) and version else None,
        nodes=tuple(sorted(name for name in nodes if isinstance(name, str))),
        failures=tuple(sorted(_failures(staying))),
        machines=len(machines),
        templates=frozenset(templates),
    )


def _made_from(reference: Any) -> tuple[str, str] | None:
    if not isinstance(reference, dict):
        return None
    return str(reference.get("kind")), str(reference.get("name"))


def _failures(machines: list[Json]) -> list[str]:
    found = []
    for machine in machines:
        status = _dict(machine, "status")
        if status.get("phase") == "Failed" or status.get("failureMessage"):
            found.append(f"{name_of(machine)}: {status.get('failureMessage') or 'failed'}")
    return found


def in_short(sentences: tuple[str, ...]) -> str:
    """The first few of them, and how many more there are."""
    more = len(sentences) - NAMED_AT_MOST
    return "; ".join(sentences[:NAMED_AT_MOST]) + (f"; and {more} more" if more > 0 else "")


def _first_problem(obj: Json | None) -> str | None:
    conditions = _dict(obj, "status").get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return None


def _condition_message(obj: Json | None, kind: str) -> str | None:
    found = condition_of(obj, kind) if obj is not None and isinstance(obj.get("status"), dict) else None
    return str(found["message"]) if found and found.get("status") == "False" and found.get("message") else None


def _dict(obj: Json | None, name: str) -> Json:
    found = obj.get(name) if obj is not None else None
    return found if isinstance(found, dict) else {}


def _number(obj: Json, name: str) -> int:
    found = obj.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
