"""One tenant, live: what a feed knows, when it says so, and how it renews its credentials."""

import asyncio

import pytest
from aiohttp import web

from butler.kube.errors import Unreachable
from butler.kube.metrics import Metrics
from butler.kube.retry import Backoff
from butler.tenant.service_feed import readable, same_words
from unit.kube.fake_api import FakeApi, refusal
from unit.tenant.feeding import KEY, Json, listening, names, path, service, until


async def test_services_are_there_and_stay_live(api: FakeApi) -> None:
    api.put(path("a"), service("10.0.0.1"))
    async with listening() as heard:
        feed = await heard.follow(api.url)
        assert not feed.is_synced
        assert feed.unheard_for == float("inf")
        await until(lambda: feed.is_synced)
        assert [(item.name, item.addresses) for item in feed.services()] == [("a", ("10.0.0.1",))]
        assert (feed.trouble, feed.key, feed.uid) == ("", KEY, "u1")
        assert feed.unheard_for < 30
        heard.changed.clear()
        api.put(path("b"), service())
        await until(lambda: names(feed) == ["a", "b"])
        api.put(path("b"), service("10.0.0.2"))
        await until(lambda: heard.services[-1][1] and heard.services[-1][1].addresses)
        api.remove(path("a"))
        await until(lambda: names(feed) == ["b"])
        assert set(heard.changed) == {KEY}
        told = [(old and (old.name, old.addresses), new and (new.name, new.addresses)) for old, new in heard.services]
        assert told == [
            (None, ("a", ("10.0.0.1",))),
            (None, ("b", ())),
            (("b", ()), ("b", ("10.0.0.2",))),
            (("a", ("10.0.0.1",)), None),
        ]


async def test_only_what_is_needed_is_asked_for(api: FakeApi) -> None:
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced and api.counts["WATCH"] == 1)
    assert len(api.requests) == 2, "one list and one watch"
    for _, asked in api.requests:
        assert asked.partition("?")[0] == "/api/v1/services"
        assert "fieldSelector=spec.type%3DLoadBalancer" in asked


async def test_the_secret_is_fetched_only_when_its_version_is_new(api: FakeApi) -> None:
    async with listening() as heard:
        feed = await heard.follow(api.url, "5")
        assert await heard.follow(api.url, "5") is feed
        assert await heard.follow(api.url, "4") is feed, "a cache that lags behind takes nothing back"
        assert heard.fetched == 1
        assert await heard.follow(api.url, "6") is feed
        assert heard.fetched == 2
        assert heard.feeds.get("u1") is feed
        assert list(heard.feeds) == [feed]


async def test_a_secret_that_cannot_be_fetched_is_the_callers_affair(api: FakeApi) -> None:
    async def fail() -> Json:
        raise Unreachable("the management cluster is away")

    async with listening() as heard:
        with pytest.raises(Unreachable):
            await heard.feeds.follow(KEY, "u1", "1", fail)
        assert len(heard.feeds) == 0
        feed = await heard.follow(api.url)
        with pytest.raises(Unreachable):
            await heard.feeds.follow(KEY, "u1", "2", fail)
        await until(lambda: feed.is_synced)


async def test_new_credentials_take_over_and_the_old_answers_stay_until_then(api: FakeApi) -> None:
    go = asyncio.Event()

    async def hold(request: web.Request) -> None:
        if request.headers["Authorization"] == "Bearer new":
            await go.wait()

    api.before = hold
    api.put(path("a"), service("10.0.0.1"))
    api.put(path("b"), service("10.0.0.2"))
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced and api.counts["WATCH"] == 1)
        heard.services.clear()
        assert await heard.follow(api.url, "2", token="new") is feed
        assert not feed.is_synced
        assert names(feed) == ["a", "b"]
        api.remove(path("a"))
        api.put(path("b"), service("10.0.0.3"))
        go.set()
        await until(lambda: feed.is_synced)
        assert names(feed) == ["b"]
        told = [(old and old.name, new and new.addresses) for old, new in heard.services]
        assert told == [("a", None), ("b", ("10.0.0.3",))], "no more is told than what is different"
        await until(lambda: api.counts["WATCH"] == 2)
        assert all(header["Authorization"] == "Bearer new" for header in api.headers[-2:])


async def test_a_secret_that_changed_in_nothing_that_matters_disturbs_no_tenant(api: FakeApi) -> None:
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced and api.counts["WATCH"] == 1)
        await heard.follow(api.url, "2")
        assert feed.is_synced
        api.put(path("a"), service())
        await until(lambda: names(feed) == ["a"])
        assert api.counts["WATCH"] == 1


async def test_a_secret_that_became_useless_is_trouble_while_the_old_one_works_on(api: FakeApi) -> None:
    api.put(path("a"), service())
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced)
        heard.changed.clear()
        assert await heard.follow_content(b"- hunter2", "2") is feed
        assert "its kubeconfig is no use: Secret payments-1/payments-admin-kubeconfig" in feed.trouble
        assert "hunter2" not in feed.trouble
        await until(lambda: heard.changed)
        api.put(path("b"), service())
        await until(lambda: names(feed) == ["a", "b"])
        await heard.follow_content(b"- hunter2", "2")
        assert heard.fetched == 2, "a useless Secret is read once"
        await heard.follow(api.url, "3", token="new")
        assert feed.trouble == ""
        await until(lambda: feed.is_synced)


async def test_a_kubeconfig_that_never_was_any_use_is_trouble(api: FakeApi) -> None:
    async with listening() as heard:
        feed = await heard.follow_content(b"- a", "1")
        assert "no use" in feed.trouble
        assert (feed.is_synced, feed.services()) == (False, [])
        assert feed.unheard_for == float("inf")
        await heard.follow(api.url, "2")
        await until(lambda: feed.is_synced and not feed.trouble)


async def test_a_client_that_was_closed_is_made_anew(api: FakeApi) -> None:
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced)
        await heard.clients.forget("u1")
        api.put(path("a"), service())
        await until(lambda: feed.trouble)
        await heard.follow(api.url)
        await until(lambda: feed.is_synced and names(feed) == ["a"])
        assert feed.trouble == ""


async def test_a_tenant_that_goes_away_is_trouble_and_comes_back(api: FakeApi) -> None:
    api.put(path("a"), service("10.0.0.1"))
    down = False

    async def answer(_: web.Request) -> web.Response | None:
        return web.Response(status=503, text="upstream is away") if down else None

    api.before = answer
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced)
        down = True
        api.close_watches()
        await until(lambda: feed.trouble)
        said = feed.trouble
        assert "503 no reason given" in said, "words that are no Status are not repeated"
        assert names(feed) == ["a"], "the last answers stay"
        assert feed.is_synced
        await asyncio.sleep(0.2)
        assert feed.trouble == said, "the same words while it stays the same"
        heard.changed.clear()
        down = False
        await until(lambda: not feed.trouble)
        await until(lambda: heard.changed)


async def test_one_broken_watch_is_no_trouble(api: FakeApi) -> None:
    async with listening(pace=Backoff(0.05, cap=0.05)) as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced and api.counts["WATCH"] == 1)
        api.refuse.append(refusal(500, "InternalError"))
        api.close_watches()
        await until(lambda: api.counts["WATCH"] >= 3)
        assert feed.trouble == ""


async def test_a_server_that_takes_watches_and_ends_them_at_once_is_trouble(api: FakeApi) -> None:
    async def end(request: web.Request) -> web.Response | None:
        return web.Response() if "watch" in request.query else None

    api.before = end
    api.put(path("a"), service())
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.trouble)
        assert feed.trouble == "its API server takes watches and ends them at once, again and again"
        assert names(feed) == ["a"]
        heard.changed.clear()
        await until(lambda: heard.changed)


async def test_a_refused_administrator_is_trouble(api: FakeApi) -> None:
    async def refuse(_: web.Request) -> web.Response:
        message = "no such user t0ken\n" * 1000
        refusal = {"kind": "Status", "status": "Failure", "message": message[:30_000], "code": 401}
        return web.json_response(refusal, status=401)

    api.before = refuse
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.trouble)
        assert "401 no such user [secret]" in feed.trouble
        assert "t0ken" not in feed.trouble, "a server that knows our token must not get it into a status"
        assert len(feed.trouble) < 500
        assert "\n" not in feed.trouble


async def test_what_changes_in_one_turn_is_announced_once(api: FakeApi) -> None:
    for number in range(200):
        api.put(path(f"s{number}"), service())
    async with listening() as heard:
        feed = await heard.follow(api.url)
        await until(lambda: feed.is_synced and heard.changed)
        assert len(heard.services) == 200
        assert len(heard.changed) < 20


async def test_a_forgotten_tenant_is_silent_and_its_objects_are_not_counted(api: FakeApi) -> None:
    metrics = Metrics()

    def counted() -> float:
        return metrics.registry.get_sample_value("butler_cache_objects", {"resource": "services"}) or 0

    api.put(path("a"), service())
    async with listening(metrics=metrics) as heard:
        for uid in ("u1", "u2"):
            await heard.follow(api.url, uid=uid)
        await until(lambda: all(feed.is_synced for feed in heard.feeds))
        assert counted() == 2
        await heard.feeds.forget("u1")
        await heard.feeds.forget("never seen")
        assert (len(heard.feeds), heard.feeds.get("u1"), counted()) == (1, None, 1)
        await heard.feeds.forget("u2")
        heard.changed.clear()
        api.put(path("b"), service())
        await asyncio.sleep(0.05)
        assert heard.changed == []


def test_words_stay_while_only_numbers_change() -> None:
    first = "Unreachable: https://10.0.0.1:6443: took 12 s, request 7f3a"
    later = "Unreachable: https://10.0.0.1:6443: took 13 s, request 8b21"
    assert same_words(first, [later]) == first
    assert same_words(first, ["Unreachable: TLS failed", later]) == first, "it is still true"
    assert same_words(first, ["Unreachable: TLS failed"]) == "Unreachable: TLS failed"
    assert same_words(first, []) == ""
    assert same_words("", [first]) == first


def test_errors_become_one_short_line() -> None:
    assert readable("a\n b\t c", None) == "a b c"
    assert len(readable("x" * 10_000, None)) == 500
