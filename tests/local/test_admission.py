"""Admission on real API servers, seen with the real kubectl: what is refused and in which words, what passes.

Each test serves the webhooks itself, for its own namespace only, under a configuration of its own name: other tests
on the same server never meet it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest

from butler.api.labels import Finalizer
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import NotFound
from butler.kube.operator import Operator
from butler.kube.resource import VALIDATING_WEBHOOK_CONFIGURATIONS as CONFIGURATIONS
from butler.webhooks import registration
from butler.webhooks.admission import POOLS
from butler.webhooks.certificates import SelfMade
from butler.webhooks.registration import AtService, AtUrl
from butler.webhooks.service import AdmissionService, AdmissionSettings, add_admission
from local.terminal import network_pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from butler.webhooks.secret_path import OwnPaths
    from local.terminal import Kubectl

Json = dict[str, Any]
KEEP = "keep these addresses, or have them released first"


class Terminal:
    """kubectl beside a running event loop: a blocked loop could not answer the API server's questions."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self.namespace = kubectl.namespace

    async def run(self, *arguments: str, **options: Any) -> tuple[str, str]:
        """What a successful command prints, and its warnings."""
        result = await asyncio.to_thread(self._kubectl.run, *arguments, **options)
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}"
        return result.stdout, result.stderr

    async def refused(self, *arguments: str, **options: Any) -> str:
        return await asyncio.to_thread(self._kubectl.refused, *arguments, **options)

    async def create(self, *objects: Json) -> None:
        for obj in objects:
            await self.run("create", "-f", "-", stdin=obj)

    async def status(self, kind: str, name: str, status: Json) -> Json:
        """Write a status, as a controller does."""
        patch = json.dumps({"status": status})
        text, _ = await self.run("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch, "-o", "json")
        return dict(json.loads(text))

    async def grant(self, name: str, start: str, end: str) -> Json:
        """An allocation of pool rack that holds addresses."""
        await self.create(allocation(name))
        return await self.status("ipallocation", name, {"phase": "Allocated", "startAddress": start, "endAddress": end})


def allocation(name: str, **spec: Any) -> Json:
    reference = {"poolRef": {"name": "rack"}, "tenantClusterRef": {"name": "t", "namespace": "t"}, "type": "nodes"}
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "IPAllocation",
        "metadata": {"name": name},
        "spec": {**reference, "count": 5, **spec},
    }


@pytest.fixture
def terminal(kubectl: Kubectl) -> Terminal:
    return Terminal(kubectl)


@pytest.fixture
async def client(kubectl: Kubectl) -> AsyncIterator[Client]:
    async with Client(config.load(kubectl.control_plane.kubeconfig)) as connected:
        yield connected


@asynccontextmanager
async def serving(client: Client, terminal: Terminal, **settings: Any) -> AsyncIterator[AdmissionService]:
    """Butler's admission as a process has it; its registration is gone afterwards."""
    operator = Operator(client, "test")
    settings = {"namespace": terminal.namespace, "name": f"butler-{terminal.namespace}", **settings}
    service = add_admission(operator, AdmissionSettings(**settings))
    task = asyncio.create_task(operator.run(handle_signals=False))
    try:
        await until(lambda: task.done() or not operator.why_unready(), "the webhooks are registered")
        await in_force(terminal)
        yield service
    finally:
        operator.stop()
        await task


@pytest.fixture
async def admission(client: Client, terminal: Terminal) -> AsyncIterator[AdmissionService]:
    async with serving(client, terminal) as service:
        yield service


async def until(condition: Callable[[], object], what: str) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (the state of a server is polled)
            await asyncio.sleep(0.02)
    assert condition(), what


async def in_force(terminal: Terminal) -> None:
    """Wait until the API server asks: it learns of configurations by a watch."""
    probe = network_pool("probe", reserved=[{"cidr": "10.40.0.0/28"}, {"cidr": "10.40.0.0/29"}])
    await eventually(terminal, probe, refused="spec.reserved[1].cidr")


async def eventually(terminal: Terminal, probe: Json, refused: str = "") -> str:
    """Try a write, without doing it, until it is refused for that reason (or passes, when there is none)."""
    kubectl = terminal._kubectl
    async with asyncio.timeout(60):
        while True:
            result = await asyncio.to_thread(kubectl.run, "create", "--dry-run=server", "-f", "-", stdin=probe)
            if (refused and refused in result.stderr) or (not refused and result.returncode == 0):
                return result.stderr
            await asyncio.sleep(0.1)


# Refusals.


async def test_kubectl_shows_what_is_wrong_with_a_new_pool(admission: AdmissionService, terminal: Terminal) -> None:
    await terminal.create(network_pool("first", "10.50.0.0/16"))
    await terminal.create(network_pool("moved", "10.60.0.0/24"))
    await terminal.status("networkpool", "moved", {"claimedCIDR": "10.70.0.0/16"})
    window = {"start": "10.40.1.0", "end": "10.40.1.255"}
    refused = {
        "reserved blocks that overlap": (
            network_pool("a", reserved=[{"cidr": "10.40.0.0/28"}, {"cidr": "10.40.0.8/29"}]),
            (
                'The NetworkPool "a" is invalid: spec.reserved[1].cidr: Invalid value: "10.40.0.8/29": 10.40.0.8/29'
                " overlaps 10.40.0.0/28 of spec.reserved[0].cidr: keep one of the two"
            ),
        ),
        "a block over a window's edge": (
            network_pool(
                "a",
                reserved=[{"cidr": "10.40.0.0/23"}],
                tenantAllocation={"start": "10.40.1.0", "end": "10.40.2.255"},
            ),
            (
                'The NetworkPool "a" is invalid: spec.reserved[0].cidr: Invalid value: "10.40.0.0/23": 10.40.0.0/23'
                " crosses the edge of window 10.40.1.0-10.40.2.255 of spec.tenantAllocation: move one of them, so that"
                " the block lies inside the window or outside it"
            ),
        ),
        "a window that is wholly reserved, and more": (
            network_pool("a", reserved=[{"cidr": "10.40.0.0/22"}, {"cidr": "10.40.3.0/32"}], tenantAllocation=window),
            (
                'The NetworkPool "a" is invalid: \n'
                '* spec.reserved[1].cidr: Invalid value: "10.40.3.0/32": 10.40.3.0/32 overlaps 10.40.0.0/22 of'
                " spec.reserved[0].cidr: keep one of the two\n"
                '* spec.reserved[0].cidr: Invalid value: "10.40.0.0/22": 10.40.0.0/22 covers the whole window'
                " 10.40.1.0-10.40.1.255 of spec.tenantAllocation"
            ),
        ),
        "the network of another pool": (
            network_pool("a", "10.50.8.0/21"),
            (
                f'The NetworkPool "a" is invalid: spec.cidr: Invalid value: "10.50.8.0/21": 10.50.8.0/21 overlaps'
                f" 10.50.0.0/16 of NetworkPool {terminal.namespace}/first: choose a network that no other pool uses"
            ),
        ),
        "what another pool still hands out from": (
            network_pool("a", "10.70.1.0/24"),
            (
                f'The NetworkPool "a" is invalid: spec.cidr: Invalid value: "10.70.1.0/24": 10.70.1.0/24 overlaps'
                f" 10.70.0.0/16, which NetworkPool {terminal.namespace}/moved still hands out from:"
                " choose a network that no other pool uses"
            ),
        ),
    }
    for what, (sent, said) in refused.items():
        assert await terminal.refused("create", "-f", "-", stdin=sent) == said, what
    assert (await terminal.run("get", "networkpools", "-o", "name"))[0].split() == [
        "networkpool.butler.butlerlabs.dev/first",
        "networkpool.butler.butlerlabs.dev/moved",
    ]


async def test_kubectl_shows_which_addresses_in_use_an_edit_would_strand(
    admission: AdmissionService, terminal: Terminal
) -> None:
    await terminal.create(network_pool("rack", "10.40.0.0/24"))
    await terminal.grant("web", "10.40.0.200", "10.40.0.204")
    seen = await terminal.grant("db", "10.40.0.20", "10.40.0.24")
    intent = {"uid": "u", "name": "new", "startAddress": "10.40.0.220", "endAddress": "10.40.0.220"}
    version = seen["metadata"]["resourceVersion"]
    await terminal.status("networkpool", "rack", {"intents": [intent], "allocationsSeen": version})
    refused = {
        "a smaller network": (
            {"cidr": "10.40.0.0/25"},
            (
                'spec.cidr: Invalid value: "10.40.0.0/25": 10.40.0.0/25 would leave out addresses in use:'
                f" web (10.40.0.200-10.40.0.204), new (10.40.0.220, being granted); {KEEP}"
            ),
        ),
        "another network": (
            {"cidr": "10.99.0.0/24"},
            (
                'spec.cidr: Invalid value: "10.99.0.0/24": 10.99.0.0/24 would leave out addresses in use: db'
                " (10.40.0.20-10.40.0.24), web (10.40.0.200-10.40.0.204), new (10.40.0.220, being granted);"
                f" {KEEP}"
            ),
        ),
        "a reserved block": (
            {"reserved": [{"cidr": "10.40.0.192/28"}]},
            (
                'spec.reserved[0].cidr: Invalid value: "10.40.0.192/28": 10.40.0.192/28 would take addresses in use:'
                f" web (10.40.0.200-10.40.0.204); {KEEP}"
            ),
        ),
        "a window": (
            {"tenantAllocation": {"start": "10.40.0.22", "end": "10.40.0.254"}},
            (
                "spec.tenantAllocation: Invalid value: the windows would leave out addresses in use:"
                f" db (10.40.0.20-10.40.0.24); {KEEP}"
            ),
        ),
        "windows": (
            {"tenantAllocation": {"ranges": [{"start": "10.40.0.1", "end": "10.40.0.210"}]}},
            (
                "spec.tenantAllocation.ranges: Invalid value: the windows would leave out addresses in use:"
                f" new (10.40.0.220, being granted); {KEEP}"
            ),
        ),
    }
    for what, (spec, said) in refused.items():
        patch = json.dumps({"spec": spec})
        found = await terminal.refused("patch", "networkpool", "rack", "--type=merge", "-p", patch)
        assert found == f'The NetworkPool "rack" is invalid: {said}', what


async def test_a_pool_in_use_is_not_deleted_and_goes_once_its_addresses_are_released(
    admission: AdmissionService, terminal: Terminal
) -> None:
    await terminal.create(network_pool("rack", "10.40.0.0/24"))
    seen = await terminal.grant("web", "10.40.0.200", "10.40.0.204")
    await terminal.status("networkpool", "rack", {"allocationsSeen": seen["metadata"]["resourceVersion"]})
    said = await terminal.refused("delete", "networkpool", "rack")
    assert said == (
        'Error from server (Forbidden): admission webhook "networkpools.butler.butlerlabs.dev" denied the request:'
        " NetworkPool rack (10.40.0.0/24) has addresses in use: web (10.40.0.200-10.40.0.204); have them released first"
        f" (kubectl get ipallocations -n {terminal.namespace} shows whose they are)"
    )
    assert "denied the request" in await terminal.refused("delete", "networkpools", "--all")
    released = await terminal.status("ipallocation", "web", {"phase": "Released"})
    await terminal.status("networkpool", "rack", {"allocationsSeen": released["metadata"]["resourceVersion"]})
    await terminal.run("delete", "networkpool", "rack")


# What passes.


async def test_edits_that_strand_nothing_pass(admission: AdmissionService, terminal: Terminal) -> None:
    await terminal.create(network_pool("rack", "10.40.0.0/24"))
    await terminal.grant("web", "10.40.0.200", "10.40.0.204")
    for spec in (
        {"cidr": "10.40.0.0/22"},
        {"cidr": "10.40.0.128/25"},
        {"reserved": [{"cidr": "10.40.0.224/28", "description": "switches"}]},
        {"tenantAllocation": {"start": "10.40.0.200", "end": "10.40.0.204"}},
    ):
        await terminal.run("patch", "networkpool", "rack", "--type=merge", "-p", json.dumps({"spec": spec}))
    await terminal.status("ipallocation", "web", {"phase": "Released"})
    move = json.dumps({"spec": {"cidr": "192.168.0.0/24", "reserved": None, "tenantAllocation": None}})
    await terminal.run("patch", "networkpool", "rack", "--type=merge", "-p", move)


async def test_a_stranded_pool_can_be_edited_with_a_warning(client: Client, terminal: Terminal) -> None:
    """Admission was off when the pool was cut short; now every edit but the right one would be stuck."""
    await terminal.create(network_pool("rack", "10.40.0.0/25"))
    await terminal.grant("web", "10.40.0.200", "10.40.0.204")
    async with serving(client, terminal):
        patch = json.dumps({"spec": {"reserved": [{"cidr": "10.40.0.64/28"}]}})
        _, warning = await terminal.run("patch", "networkpool", "rack", "--type=merge", "-p", patch)
        assert warning == ("Warning: in use, and outside what this pool hands out: web (10.40.0.200-10.40.0.204)\n")


async def test_what_is_on_its_way_out_can_always_be_let_go(admission: AdmissionService, terminal: Terminal) -> None:
    pool = network_pool("rack", "10.40.0.0/24")
    pool["metadata"]["finalizers"] = ["example.com/held"]
    await terminal.create(pool)
    await terminal.run("delete", "networkpool", "rack", "--wait=false")
    await terminal.grant("late", "10.40.0.200", "10.40.0.204")
    await terminal.run("delete", "networkpool", "rack", "--wait=false")
    patch = json.dumps({"metadata": {"finalizers": None}})
    await terminal.run("patch", "networkpool", "rack", "--type=merge", "-p", patch)
    assert "NotFound" in await terminal.refused("get", "networkpool", "rack")


async def test_authors_of_requests_that_cannot_be_met_now_are_warned(
    admission: AdmissionService, terminal: Terminal
) -> None:
    async def warning(name: str, **spec: Any) -> str:
        return (await terminal.run("create", "-f", "-", stdin=allocation(name, **spec)))[1]

    def pinned(start: str, end: str) -> Json:
        return {"pinnedRange": {"startAddress": start, "endAddress": end}, "count": None}

    assert await warning("early") == (
        f"Warning: there is no NetworkPool rack in namespace {terminal.namespace}: the request waits until it is"
        " created\n"
    )
    await terminal.create(network_pool("rack", "10.40.0.0/24"))
    await terminal.status(
        "ipallocation", "early", {"phase": "Allocated", "startAddress": "10.40.0.1", "endAddress": "10.40.0.5"}
    )
    assert await warning("fits") == ""
    failed = "Warning: the request will be Failed for now: "
    assert await warning("large", count=255) == (
        f"{failed}needs 255 contiguous addresses; rack hands out 254 in all: ask for 254 or fewer, or add a window\n"
    )
    assert (await warning("outside", **pinned("10.41.0.1", "10.41.0.5"))).startswith(
        f"{failed}10.41.0.1-10.41.0.5 is pinned, but it is outside what rack hands out (10.40.0.1-10.40.0.254)"
    )
    conflicting = allocation("taken", **pinned("10.40.0.4", "10.40.0.8"))
    async with asyncio.timeout(60):
        taken = ""
        while not taken:  # the advice comes from a cache, which follows the server at its own pace
            _, taken = await terminal.run("create", "--dry-run=server", "-f", "-", stdin=conflicting)
    assert taken == (
        f"{failed}10.40.0.4-10.40.0.8 is pinned, but 10.40.0.4 is held by early: pin a free range or release that"
        " allocation\n"
    )


async def test_no_webhook_is_asked_about_requests_that_butler_makes_itself(
    admission: AdmissionService, terminal: Terminal
) -> None:
    own = allocation("own")
    own["metadata"]["finalizers"] = [Finalizer.IP_ALLOCATION]
    other = allocation("other")
    other["metadata"]["finalizers"] = ["example.com/held"]
    assert (await terminal.run("create", "--dry-run=server", "-f", "-", stdin=own))[1] == ""
    assert (
        "there is no NetworkPool rack" in (await terminal.run("create", "--dry-run=server", "-f", "-", stdin=other))[1]
    )


# Races.


class Gate:
    """Keeps the first answer back until the test has done something in between."""

    def __init__(self, service: AdmissionService) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()
        self.questions = 0
        self._decide = service.server._decide
        service.server._decide = self

    async def __call__(self, question: Any) -> Any:
        self.questions += 1
        answer = await self._decide(question)
        if not self.asked.is_set():
            assert answer.allowed, "what was asked first is fine as far as can be known"
            self.asked.set()
            await self.open.wait()
        return answer


async def with_patience(client: Client, service: AdmissionService) -> None:
    """Let answers take half a minute, so that a busy machine does not decide the race."""
    service.server._decide_within = 28.0
    assert service.installed is not None
    patient = [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}]
    changed = await client.patch(CONFIGURATIONS, service.installed.name, patient, kind="json")
    service.installed = replace(service.installed, resource_version=changed["metadata"]["resourceVersion"])


@pytest.mark.parametrize("verb", ["patch", "apply", "replace", "delete"])
async def test_a_grant_that_is_reserved_while_an_edit_is_under_way_is_honoured(
    admission: AdmissionService, client: Client, terminal: Terminal, verb: str
) -> None:
    """The answer to the first question was right and came too late; the API server asks again, or refuses."""
    await with_patience(client, admission)
    await terminal.create(network_pool("rack", "10.40.0.0/24"))
    stored = json.loads((await terminal.run("get", "networkpool", "rack", "-o", "json"))[0])
    smaller = network_pool("rack", "10.40.0.0/25")
    edits: dict[str, Callable[[], Awaitable[str]]] = {
        "patch": lambda: terminal.refused(
            "patch", "networkpool", "rack", "--type=merge", "-p", json.dumps({"spec": smaller["spec"]})
        ),
        "apply": lambda: terminal.refused("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=smaller),
        "replace": lambda: terminal.refused("replace", "-f", "-", stdin={**stored, "spec": smaller["spec"]}),
        "delete": lambda: terminal.refused("delete", "networkpool", "rack", "--wait=false"),
    }
    gate = Gate(admission)
    edit = asyncio.create_task(edits[verb]())  # type: ignore[arg-type]
    await asyncio.wait_for(gate.asked.wait(), 60)
    intent = {"uid": "u", "name": "new", "startAddress": "10.40.0.220", "endAddress": "10.40.0.224"}
    status = {"status": {"intents": [intent]}}
    await client.patch(POOLS, "rack", status, terminal.namespace, subresource="status")
    gate.open.set()
    said = await edit
    if verb == "replace":
        assert "the object has been modified" in said
    else:
        assert "new (10.40.0.220-10.40.0.224, being granted)" in said
        assert gate.questions == 2
    kept = json.loads((await terminal.run("get", "networkpool", "rack", "-o", "json"))[0])
    assert kept["spec"]["cidr"] == "10.40.0.0/24"
    assert "deletionTimestamp" not in kept["metadata"]


# The registration.


async def test_without_a_server_writes_are_refused_until_the_registration_is_removed(
    client: Client, terminal: Terminal
) -> None:
    """Specs only: statuses, labels and finalizers still pass, or no controller could clean up."""
    await terminal.create(network_pool("rack", "10.40.0.0/24"))
    name = f"butler-{terminal.namespace}"
    dead = AtUrl("https://127.0.0.1:1/admission")
    bundle = (await SelfMade(["127.0.0.1"]).fetch()).authorities
    await registration.install(
        client, registration.configuration(dead, bundle, name=name, namespace=terminal.namespace)
    )
    try:
        probe = network_pool("probe", "10.90.0.0/24")
        said = await eventually(terminal, probe, refused="connection refused")
        assert 'failed calling webhook "networkpools.butler.butlerlabs.dev"' in said
        patch = json.dumps({"spec": {"cidr": "10.40.0.0/23"}})
        assert "connection refused" in await terminal.refused(
            "patch", "networkpool", "rack", "--type=merge", "-p", patch
        )
        assert "connection refused" in await terminal.refused("delete", "networkpool", "rack")
        await terminal.run("label", "networkpool", "rack", "a=b")
        await terminal.status("networkpool", "rack", {"totalIPs": 254})
    finally:
        assert await registration.remove(client, name)
    await eventually(terminal, probe)
    await terminal.run("delete", "networkpool", "rack")
    assert not await registration.remove(client, name), "there is nothing left to remove"


async def test_a_registration_that_a_dead_process_left_is_replaced_at_start(client: Client, terminal: Terminal) -> None:
    name = f"butler-{terminal.namespace}"
    bundle = (await SelfMade(["127.0.0.1"]).fetch()).authorities
    left = registration.configuration(
        AtUrl("https://127.0.0.1:1/admission"), bundle, name=name, namespace=terminal.namespace
    )
    await registration.install(client, left)
    await eventually(terminal, network_pool("probe"), refused="connection refused")
    async with serving(client, terminal):
        await eventually(terminal, network_pool("probe"))
    with pytest.raises(NotFound):
        await client.get(CONFIGURATIONS, name)
    await eventually(terminal, network_pool("probe"))


async def test_what_was_edited_in_the_registration_is_put_right_at_start(client: Client, terminal: Terminal) -> None:
    name = f"butler-{terminal.namespace}"
    bundle = (await SelfMade(["127.0.0.1"]).fetch()).authorities
    wanted = registration.configuration(
        AtService("nowhere", "butler-webhooks"), bundle, name=name, namespace=terminal.namespace
    )
    try:
        first = await registration.install(client, wanted)
        assert await registration.install(client, wanted) == first, "what is right is not written again"
        before = await client.get(CONFIGURATIONS, name)
        edits: list[Json] = [
            {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
            {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 1},
            {"op": "replace", "path": "/webhooks/0/rules/0/operations", "value": ["CREATE"]},
            {"op": "replace", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"a": "b"}}},
            {"op": "replace", "path": "/webhooks/0/namespaceSelector", "value": {}},
            {"op": "replace", "path": "/webhooks/0/matchConditions/0/expression", "value": "false"},
            {"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": "Z29uZQ=="},
            {"op": "add", "path": "/webhooks/1/matchConditions/-", "value": {"name": "off", "expression": "false"}},
        ]
        await client.patch(CONFIGURATIONS, name, edits, kind="json", field_manager="an-editor")
        assert (await client.get(CONFIGURATIONS, name))["webhooks"] != before["webhooks"]
        await registration.install(client, wanted)
        assert (await client.get(CONFIGURATIONS, name))["webhooks"] == before["webhooks"]
        for hook, sent in zip(before["webhooks"], wanted["webhooks"], strict=True):
            assert {**sent, **hook} == hook, "every field stands there as it was sent"
        assert not await registration.remove(client, first), "a later state is another writer's"
    finally:
        assert await registration.remove(client, name)


# Strangers.


def _unverified() -> ssl.SSLContext:
    """A caller who neither knows nor cares whose certificate it is."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_a_stranger_learns_nothing_of_pools_and_allocations(
    admission: AdmissionService, terminal: Terminal
) -> None:
    await terminal.create(network_pool("rack", "10.50.0.0/16"))
    await terminal.grant("taken", "10.50.1.0", "10.50.1.4")
    assert admission.server.address is not None
    base = "https://{}:{}".format(*admission.server.address)
    wish = {
        "uid": "1",
        "operation": "CREATE",
        "resource": {"group": "butler.butlerlabs.dev", "version": "v1alpha1", "resource": "networkpools"},
        "namespace": terminal.namespace,
        "object": network_pool("guess", "10.0.0.0/8"),
    }
    question = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": wish}
    told = set()
    async with aiohttp.ClientSession() as stranger:
        for path in ("/admission", "/", "/admission/", f"/admission/{'0' * 64}", "/healthz"):
            async with stranger.post(f"{base}{path}", json=question, ssl=_unverified()) as answer:
                told.add((answer.status, await answer.read()))
    assert told == {(404, b"")}
    said = await terminal.refused("create", "-f", "-", stdin=network_pool("guess", "10.0.0.0/8"))
    assert f"overlaps 10.50.0.0/16 of NetworkPool {terminal.namespace}/rack" in said, "the API server is answered"


async def test_half_questions_of_strangers_stop_no_write(admission: AdmissionService, terminal: Terminal) -> None:
    assert admission.server.address is not None
    half = b"POST /admission HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
    writers = []
    for _ in range(140):
        _, writer = await asyncio.open_connection(*admission.server.address, ssl=_unverified())
        writer.write(half)
        writers.append(writer)
    for number in range(5):
        # With the half questions above in all places, this took until the API server gave up.
        await terminal.create(network_pool(f"rack-{number}", f"10.{50 + number}.0.0/16"))
    for writer in writers:
        writer.close()


async def test_a_path_that_changes_is_asked_at_once(client: Client, terminal: Terminal) -> None:
    async with serving(client, terminal) as service:
        first = service.server.url
        source = cast("OwnPaths", service.server._path_source)
        assert source._paths is not None
        source._paths = source._paths.changed(datetime.now(UTC))
        await until(lambda: service.server.url != first, "the server takes the new path")
        await in_force(terminal)
        await terminal.create(network_pool("rack", "10.50.0.0/16"))
