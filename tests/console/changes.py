"""For every page something that changes on it, done from outside, and what the page has to show then.

Writes are those that kubectl sends, without kubectl's own start: what is measured is the way from the API server to the
user who looks at the page.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.browsing import PATIENCE, visit
from console.estate import TEAM
from server.objects import GROUP, HOME, PLURALS, allocation, create, pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Page

    from console.estate import Estate

_numbers = itertools.count(1)
API = f"/apis/{GROUP}/namespaces"
SEEN = """([text, milliseconds]) => {
  const shown = () => document.body.innerText + [...document.querySelectorAll("textarea")].map(each => each.value)
  if (shown().includes(text)) throw new Error(`the page showed ${text} before anything was changed`)
  window.seen = new Promise((done, failed) => {
    const began = performance.now()
    const look = () => {
      if (shown().includes(text)) done(performance.timeOrigin + performance.now())
      else if (performance.now() - began > milliseconds) failed(new Error(`the page never showed ${text}`))
      else requestAnimationFrame(look)
    }
    look()
  })
}"""


@dataclass(frozen=True)
class Written:
    """A write that is ready to be sent, and what a page shows of it."""

    text: str
    send: Callable[[], tuple[int, Any]]


def post(estate: Estate, obj: Any, text: str) -> Written:
    path = f"{API}/{obj['metadata']['namespace']}/{PLURALS[obj['kind']]}"
    return Written(text, lambda: estate.plane.request("POST", path, obj))


def put(estate: Estate, plural: str, namespace: str, name: str, into: Callable[[Any], str]) -> Written:
    """An object with something changed; `into` changes it, and answers with what is shown of that."""
    path = f"{API}/{namespace}/{plural}/{name}"
    status, found = estate.plane.request("GET", path)
    assert status == 200, found
    return Written(into(found), lambda: estate.plane.request("PUT", path, found))


def pool_comes(estate: Estate, number: int) -> Written:
    return post(estate, pool(f"live-{number}", f"172.{16 + number // 256}.{number % 256}.0/27"), f"live-{number}")


def pool_is_counted(estate: Estate, number: int) -> Written:
    found = estate.plane.request("GET", f"{API}/{HOME}/networkpools")[1]
    return Written(f"in {len(found['items']) + 1} pools", pool_comes(estate, number).send)


def window_widens(words: str) -> Callable[[Estate, int], Written]:
    """The pool of the example has one address more at the end of its window."""

    def widen(found: Any) -> str:
        window = found["spec"]["tenantAllocation"]
        start, last = (int(window[end].rsplit(".", 1)[1]) for end in ("start", "end"))
        window["end"] = f"10.92.90.{last + 1}"
        return words.format(last + 1 - start + 1)

    return lambda estate, _number: put(estate, "networkpools", HOME, "production-pool", widen)


def pool_reserves(estate: Estate, number: int) -> Written:
    def reserve(found: Any) -> str:
        found["spec"]["reserved"] = [{"cidr": "10.92.91.0/28", "description": f"kept for {number}"}]
        return f"kept for {number}"

    return put(estate, "networkpools", HOME, "production-pool", reserve)


def allocation_comes(estate: Estate, number: int) -> Written:
    return post(estate, allocation(f"asked-{number}", "asked-here", 1), f"asked-{number}")


def workers_change(words: str) -> Callable[[Estate, int], Written]:
    """Of a tenant whose provider does not exist: nothing is built, and nothing else changes."""

    def made(estate: Estate, number: int) -> Written:
        def scale(found: Any) -> str:
            found["spec"]["workers"]["replicas"] = 100 + number
            return words.format(100 + number)

        return put(estate, "tenantclusters", TEAM, "still", scale)

    return made


def provider_comes(estate: Estate, number: int) -> Written:
    spec = estate.get("providerconfigs", "harvester-production")["spec"]
    meta = {"name": f"provider-{number}", "namespace": HOME}
    made = {"apiVersion": GROUP, "kind": "ProviderConfig", "metadata": meta, "spec": spec}
    return post(estate, made, f"provider-{number}")


def provider_is_labelled(estate: Estate, number: int) -> Written:
    def into(found: Any) -> str:
        found["metadata"].setdefault("labels", {})["site"] = f"site-{number}"
        return f"site-{number}"

    return put(estate, "providerconfigs", HOME, "harvester-production", into)


def event_comes(estate: Estate, number: int) -> Written:
    """An event of a tenant, as a controller records it."""
    tenant = estate.get("tenantclusters", "payments", namespace=TEAM)
    about = {"apiVersion": GROUP, "kind": "TenantCluster", "name": "payments", "namespace": TEAM}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body = {
        "metadata": {"name": f"payments.live-{number}", "namespace": TEAM},
        "involvedObject": {**about, "uid": tenant["metadata"]["uid"]},
        "type": "Normal",
        "reason": "Tried",
        "message": f"trial number {number}",
        "source": {"component": "tests"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    path = f"/api/v1/namespaces/{TEAM}/events"
    return Written(f"trial number {number}", lambda: estate.plane.request("POST", path, body))


def pool_around_address_comes(estate: Estate, number: int) -> Written:
    return post(estate, pool(f"around-{number}", f"10.200.{number}.0/27"), f"around-{number}")


def room_comes(estate: Estate, number: int) -> Written:
    """The only one that Butler's controllers have a part in: they grant what waited."""
    create(estate.plane, pool(f"tight-{number}", f"10.201.{number}.0/30"))
    create(estate.plane, allocation(f"waits-{number}", f"tight-{number}", 6))

    def into(found: Any) -> str:
        found["spec"]["cidr"] = f"10.201.{number}.0/28"
        return f"10.201.{number}.1"

    return put(estate, "networkpools", HOME, f"tight-{number}", into)


CHANGES: dict[str, Any] = {
    "overview": pool_is_counted,
    "pools": pool_comes,
    "pool": window_widens("of {} addresses held"),
    "pool-allocations": allocation_comes,
    "pool-over-time": window_widens("of {} addresses held"),
    "pool-settings": pool_reserves,
    "tenants": workers_change("0/{}"),
    "new-tenant": provider_comes,
    "tenant": workers_change("0 of {}"),
    "tenant-activity": event_comes,
    "tenant-yaml": workers_change("replicas: {}"),
    "plan": window_widens("of {} held"),
    "providers": provider_comes,
    "provider": provider_is_labelled,
    "address": pool_around_address_comes,
    "allocations": allocation_comes,
    "allocation": room_comes,
    "activity": event_comes,
}
ELSEWHERE = {
    "pools": "/pools?q=live-NUMBER",
    "pool-allocations": f"/pools/{HOME}/asked-here?tab=allocations",
    "new-tenant": "/tenants/new?step=provider",
    "tenant": f"/tenants/{TEAM}/still",
    "tenant-yaml": f"/tenants/{TEAM}/still?tab=yaml",
    "address": "/addresses?q=10.200.NUMBER.5",
    "allocation": f"/allocations/{HOME}/waits-NUMBER",
}
"""Where such a page shows the change, unless where pages are usually looked at; NUMBER is that of the change."""
NOT_LIVE = {
    "addresses": "shows the searches of this browser",
    "sessions": "sessions are no objects that people change from a terminal",
    "not-found": "there is nothing",
}


def prepare(estate: Estate) -> None:
    """What some of the changes are made to."""
    create(estate.plane, pool("asked-here", "10.180.0.0/27"))
    spec = {"kubernetesVersion": "v1.33.2", "providerConfigRef": {"name": "nowhere"}, "workers": {"replicas": 1}}
    meta = {"name": "still", "namespace": TEAM}
    create(estate.plane, {"apiVersion": GROUP, "kind": "TenantCluster", "metadata": meta, "spec": spec})


async def measured(page: Page, estate: Estate, path: str, change: Any) -> float:
    """Seconds from when the write is sent until the page shows it."""
    for number in itertools.islice(_numbers, 20):
        written: Written = await asyncio.to_thread(change, estate, number)
        await visit(page, path.replace("NUMBER", str(number)))
        await page.evaluate(SEEN, [written.text, PATIENCE])
        sent = time.time()
        status, answer = await asyncio.to_thread(written.send)
        if status != 409:  # a controller wrote in between
            break
    assert status in (200, 201), answer
    return float(await page.evaluate("window.seen")) / 1000 - sent
