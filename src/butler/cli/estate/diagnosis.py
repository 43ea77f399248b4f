"""Reading what `doctor` and `version` judge: what the server is, who may do what, and who works."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import msgspec

from butler.api import GROUP, VERSION
from butler.api.crd import custom_resource_definition
from butler.api.kinds import KINDS
from butler.capi.naming import CLUSTER, KUBEADM_CONFIG_TEMPLATE, MACHINE_DEPLOYMENT, STEWARD_CONTROL_PLANE
from butler.capi.naming import PROVIDERS as PROVIDER_KINDS
from butler.cli.estate.consistency_check import read_tolerantly
from butler.kube.errors import ApiError, Forbidden, KubeError, NotFound
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, LEASES, untyped
from butler.kube.transport import ApiRequest
from butler.reports import doctor
from butler.reports.doctor import AdmissionCheck, Check, CheckLevel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from butler.api.objects import Json
    from butler.capi.naming import Kind
    from butler.cli.toolkit.session import CommandSession

LEASE: Final = "butler-controller"
REVIEWS: Final = untyped(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
POOLS: Final = untyped(GROUP, VERSION, "networkpools", "NetworkPool")
LOOKING: Final = (
    ("list", GROUP, "networkpools", True),
    ("list", GROUP, "ipallocations", True),
    ("list", GROUP, "providerconfigs", True),
    ("list", GROUP, "tenantclusters", False),
)
CHANGING: Final = (
    ("create", GROUP, "networkpools", True),
    ("patch", GROUP, "networkpools", True),
    ("delete", GROUP, "networkpools", True),
    ("create", GROUP, "ipallocations", True),
    ("delete", GROUP, "ipallocations", True),
    ("create", GROUP, "providerconfigs", True),
    ("patch", GROUP, "tenantclusters", False),
    ("get", "", "secrets", False),
)
"""What operators do: verb, group, resource, and whether only in Butler's own namespace."""
PROBE: Final = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "NetworkPool",
    "spec": {
        "cidr": "192.0.2.0/24",
        "reserved": [{"cidr": "192.0.2.8/29"}],
        "tenantAllocation": {"start": "192.0.2.12", "end": "192.0.2.20"},
    },
}
"""A pool that the definition lets pass and admission refuses, because a reserved block crosses a window's edge."""


async def server_version(session: CommandSession) -> Json:
    request = ApiRequest("get", "GET", "/version", "version", None, repeatable=True)
    found = msgspec.json.decode(await session.client.transport.send(request))
    return found if isinstance(found, dict) else {}


async def group_versions(session: CommandSession) -> list[str]:
    """The versions of Butler's group that the server has."""
    try:
        found = await _discovered(session, f"/apis/{GROUP}")
    except NotFound:
        return []
    return [str(version.get("groupVersion")) for version in found.get("versions") or ()]


async def _discovered(session: CommandSession, path: str) -> Json:
    request = ApiRequest("get", "GET", path, "discovery", None, repeatable=True)
    found = msgspec.json.decode(await session.client.transport.send(request))
    return found if isinstance(found, dict) else {}


async def examine(session: CommandSession) -> AsyncIterator[Check]:
    """All checks that need a server, in order. Raises KubeError when it cannot be asked at all."""
    began = time.monotonic()
    version = await server_version(session)
    yield doctor.kubernetes(version, (time.monotonic() - began) * 1000)
    skew = await _skew(session)
    yield doctor.clock(skew)
    yield await _allowed("Definitions", _definitions(session))
    yield await _permissions(session)
    admission = await _admission(session)
    now = datetime.now(UTC) + timedelta(seconds=skew or 0.0)
    yield await _allowed("Controllers", _controllers(session, admission, now))
    yield doctor.admission_check(admission)
    try:
        estate, strange = await read_tolerantly(session)
    except (Forbidden, NotFound) as error:
        yield Check("Estate", CheckLevel.FAIL, f"it cannot be read: {error.message}", "see the checks above")
        return
    for unreadable in strange:
        yield Check(
            "Estate",
            CheckLevel.FAIL,
            f"{unreadable.kind} {unreadable.key} cannot be read: {unreadable.why}",
            "`butleradm ipam fsck`",
        )
    for check in (*doctor.pools(estate.pools), *doctor.providers(estate.providers), *doctor.tenants(estate.clusters)):
        yield check
    used = {provider.spec.provider for provider in estate.providers} & set(PROVIDER_KINDS)
    kinds = [CLUSTER, MACHINE_DEPLOYMENT, KUBEADM_CONFIG_TEMPLATE, STEWARD_CONTROL_PLANE]
    kinds += [PROVIDER_KINDS[provider].cluster for provider in sorted(used)]
    yield doctor.cluster_api(await _missing(session, kinds), needed=bool(estate.clusters))
    yield doctor.metallb(estate.clusters)


async def _allowed(name: str, check: Any) -> Check:
    """A check, or a warning where its author may not see what it needs."""
    try:
        found: Check = await check
    except Forbidden as error:
        return Check(name, CheckLevel.WARN, f"not seen: {error.message}", "run this as a user who may")
    return found


async def _skew(session: CommandSession) -> float | None:
    """Seconds that the server's clock is ahead, by the date of an answer."""
    request = ApiRequest("get", "GET", "/version", "version", None, repeatable=True)
    with suppress(KubeError, aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError):
        answer = await session.client.transport.open(request, aiohttp.ClientTimeout(total=10.0))
        try:
            here = datetime.now(UTC)
            await answer.read()
        finally:
            answer.release()
        apart = (parsedate_to_datetime(answer.headers["Date"]) - here).total_seconds()
        return 0.0 if abs(apart) < 2.0 else apart  # a date tells whole seconds
    return None


async def _definitions(session: CommandSession) -> Check:
    wanted = [custom_resource_definition(kind) for kind in KINDS]
    names = {definition["metadata"]["name"] for definition in wanted}
    listed = await session.client.list(CUSTOM_RESOURCE_DEFINITIONS)
    return doctor.definitions(
        wanted, {name: definition for definition in listed.items if (name := definition["metadata"]["name"]) in names}
    )


async def _permissions(session: CommandSession) -> Check:
    questions = (*LOOKING, *CHANGING)
    answers = await asyncio.gather(*(_may(session, *pair) for pair in questions))
    denied = [question for question, allowed in zip(questions, answers, strict=True) if not allowed]
    words: dict[str, list[str]] = {}
    for verb, _, plural, at_home in denied:
        words.setdefault(f"{plural}{f' in {session.home}' if at_home else ' everywhere'}", []).append(verb)
    return doctor.permissions(
        [f"{', '.join(verbs)} {what}" for what, verbs in words.items()],
        asked=len(questions),
        may_look=not set(denied) & set(LOOKING),
    )


async def _may(session: CommandSession, verb: str, group: str, plural: str, at_home: bool) -> bool:
    attributes = {"verb": verb, "group": group, "resource": plural, "namespace": session.home if at_home else ""}
    try:
        answer = await session.client.create(REVIEWS, {"spec": {"resourceAttributes": attributes}})
    except ApiError:
        return False
    return bool((answer.get("status") or {}).get("allowed"))


async def _admission(session: CommandSession) -> AdmissionCheck:
    """Offer a pool that has to be refused; it is a dry run, so nothing comes of it in any case."""
    body = {**PROBE, "metadata": {"generateName": "butler-doctor-", "namespace": session.home}}
    try:
        await session.client.create(POOLS, body, dry_run=True)
    except ApiError as error:
        if "failed calling webhook" in error.message:
            return AdmissionCheck.SILENT
        return AdmissionCheck.ANSWERS if "admission webhook" in error.message else AdmissionCheck.UNKNOWN
    except KubeError:
        return AdmissionCheck.UNKNOWN
    return AdmissionCheck.ABSENT


async def _controllers(session: CommandSession, admission: AdmissionCheck, now: datetime) -> Check:
    try:
        lease: Json | None = await session.client.get(LEASES, LEASE, session.home)
    except NotFound:
        lease = None
    return doctor.controllers(lease, admission, now)


async def _missing(session: CommandSession, kinds: Iterable[Kind]) -> list[str]:
    """The kinds that the server does not serve."""
    served: dict[str, set[str]] = {}
    missing = []
    for kind in kinds:
        if kind.api_version not in served:
            try:
                found = await _discovered(session, f"/apis/{kind.api_version}")
            except NotFound:
                found = {}
            served[kind.api_version] = {str(resource.get("name")) for resource in found.get("resources") or ()}
        if kind.plural not in served[kind.api_version]:
            missing.append(f"{kind.plural}.{kind.group}/{kind.version}")
    return missing
