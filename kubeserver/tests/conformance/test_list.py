"""Lists: selectors, pages and versions."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from conformance.kinds import configmap, pod, service, widget
from conformance.wire import PARTIAL_LIST, failure, invalid, not_found

if TYPE_CHECKING:
    from conformance.wire import Api, Object

PLANETS = {
    "mercury": {"kind": "rock", "size": "1"},
    "venus": {"kind": "rock", "size": "2"},
    "jupiter": {"kind": "gas", "size": "9"},
    "pluto": {"size": "0"},
    "nothing": {},
}


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def planets(api: Api, namespace: str) -> str:
    for name, labels in PLANETS.items():
        await api.post(maps(namespace), configmap(name, labels=labels))
    return maps(namespace)


def names(body: Object) -> set[str]:
    return {item["metadata"]["name"] for item in body["items"]} - {"kube-root-ca.crt"}


async def test_a_missing_object_is_not_found(api: Api, namespace: str) -> None:
    answer = await api.get(f"{maps(namespace)}/missing")
    assert answer.status == 404
    assert answer.body == not_found("configmaps", "missing")


async def test_a_missing_custom_resource_is_not_found(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.get(f"{widgets}/namespaces/{namespace}/widgets/missing")
    assert answer.body == not_found("widgets", "missing", widgets.split("/")[2])


async def test_a_list_says_what_it_is(api: Api, namespace: str, widgets: str) -> None:
    await api.post(maps(namespace), configmap("one"))
    body = (await api.get(maps(namespace))).made
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert "kind" not in body["items"][0]
    custom = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(custom, widget("one"))
    body = (await api.get(custom)).made
    assert (body["kind"], body["apiVersion"]) == ("WidgetList", widgets.removeprefix("/apis/"))
    assert body["items"][0]["kind"] == "Widget"


async def test_an_empty_list_has_items(api: Api, namespace: str, widgets: str) -> None:
    body = (await api.get(f"{widgets}/namespaces/{namespace}/widgets")).made
    assert body["items"] == []
    assert "continue" in body["metadata"]
    body = (await api.get(f"/api/v1/namespaces/{namespace}/secrets")).made
    assert body["items"] == []
    assert "continue" not in body["metadata"]


async def test_a_list_of_a_missing_namespace_is_empty(api: Api, unique: str) -> None:
    answer = await api.get(maps(f"missing-{unique}"))
    assert answer.status == 200
    assert answer.body["items"] == []


async def test_a_list_is_sorted_by_name(api: Api, namespace: str) -> None:
    body = (await api.get(await planets(api, namespace))).made
    listed = [item["metadata"]["name"] for item in body["items"]]
    assert listed == sorted(listed)


async def test_all_namespaces_can_be_listed(api: Api, namespace: str, unique: str) -> None:
    await api.post(maps(namespace), configmap("one", labels={"only": unique}))
    body = (await api.get("/api/v1/configmaps", labelSelector=f"only={unique}")).made
    assert [item["metadata"]["namespace"] for item in body["items"]] == [namespace]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("kind=rock", {"mercury", "venus"}),
        ("kind==rock", {"mercury", "venus"}),
        ("kind!=rock", {"jupiter", "pluto", "nothing"}),
        ("kind", {"mercury", "venus", "jupiter"}),
        ("!kind", {"pluto", "nothing"}),
        ("kind in (gas,rock)", {"mercury", "venus", "jupiter"}),
        ("kind notin (gas)", {"mercury", "venus", "pluto", "nothing"}),
        ("size>1", {"venus", "jupiter"}),
        ("size<2", {"mercury", "pluto"}),
        ("kind=rock,size=2", {"venus"}),
        (" kind = rock , size in ( 1 , 9 ) ", {"mercury"}),
        ("kind in ()", set()),
        ("kind=", set()),
        ("", set(PLANETS)),
    ],
)
async def test_a_label_selector_selects(api: Api, namespace: str, selector: str, expected: set[str]) -> None:
    path = await planets(api, namespace)
    assert names((await api.get(path, labelSelector=selector)).made) == expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("kind in rock", "unable to parse requirement: found 'rock' expected: '('"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("kind=not ok", "found 'ok', expected: ',' or 'end of string'"),
        (
            "-kind=x",
            (
                'unable to parse requirement: <nil>: Invalid value: "-kind": name part must consist of '
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ),
        ),
        (
            "size>big",
            (
                'unable to parse requirement: values[0]: Invalid value: "big": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        ("kind=a,,b", "found ',', expected: identifier after ','"),
        ("kind in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
    ],
)
async def test_a_bad_label_selector_is_refused(api: Api, namespace: str, selector: str, message: str) -> None:
    answer = await api.get(maps(namespace), labelSelector=selector)
    assert answer.body == failure(400, "BadRequest", message)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=venus", {"venus"}),
        ("metadata.name==venus", {"venus"}),
        ("metadata.name!=venus", {"mercury", "jupiter", "pluto", "nothing"}),
        ("metadata.name=venus,metadata.name=pluto", set()),
        ("metadata.namespace=elsewhere", set()),
        ("metadata.namespace!=elsewhere", set(PLANETS)),
    ],
)
async def test_a_field_selector_selects(api: Api, namespace: str, selector: str, expected: set[str]) -> None:
    path = await planets(api, namespace)
    assert names((await api.get(path, fieldSelector=selector)).made) == expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("data.a=b", '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
        (
            "metadata.uid=5",
            '"metadata.uid" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_a_bad_field_selector_is_refused(api: Api, namespace: str, selector: str, message: str) -> None:
    answer = await api.get(maps(namespace), fieldSelector=selector)
    assert answer.body == failure(400, "BadRequest", message)


async def test_a_custom_resource_has_two_selectable_fields(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    for name in ("one", "two"):
        await api.post(path, widget(name))
    assert names((await api.get(path, fieldSelector="metadata.name=two")).made) == {"two"}
    answer = await api.get(path, fieldSelector="spec.size=1")
    assert answer.body == failure(400, "BadRequest", "field label not supported: spec.size")


async def test_services_are_selectable_by_type_and_cluster_ip(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    await api.post(path, service("inner"))
    await api.post(path, service("outer", type="LoadBalancer"))
    await api.post(path, service("headless", clusterIP="None"))
    assert names((await api.get(path, fieldSelector="spec.type=LoadBalancer")).made) == {"outer"}
    assert names((await api.get(path, fieldSelector="spec.type!=LoadBalancer")).made) == {"inner", "headless"}
    assert names((await api.get(path, fieldSelector="spec.clusterIP=None")).made) == {"headless"}


async def test_secrets_are_selectable_by_type(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    await api.post(path, {"metadata": {"name": "plain"}})
    await api.post(path, {"metadata": {"name": "special"}, "type": "example.com/special"})
    assert names((await api.get(path, fieldSelector="type=example.com/special")).made) == {"special"}
    assert names((await api.get(path, fieldSelector="type=Opaque")).made) == {"plain"}


async def test_events_are_selectable_by_what_they_are_about(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    for name, kind, reason, level in (("e1", "Pod", "Started", "Normal"), ("e2", "Node", "Failed", "Warning")):
        body = {
            "metadata": {"name": name},
            "involvedObject": {"kind": kind, "name": f"a-{kind.lower()}", "namespace": namespace, "uid": "u-1"},
            "reason": reason,
            "type": level,
            "source": {"component": "tester"},
        }
        assert (await api.post(path, body)).status == 201
    for selector in (
        "involvedObject.kind=Node",
        "involvedObject.name=a-node",
        "reason=Failed",
        "type=Warning",
        f"involvedObject.namespace={namespace},involvedObject.uid=u-1,type!=Normal",
        "source=tester,reason!=Started",
        "reportingComponent!=tester,reason=Failed",
    ):
        assert names((await api.get(path, fieldSelector=selector)).made) == {"e2"}, selector


async def test_pods_are_selectable_by_node_and_phase(api: Api, pods: str) -> None:
    assert (await api.post(pods, pod("one", nodeName="node-1"))).status == 201
    assert (await api.post(pods, pod("two"))).status == 201
    assert names((await api.get(pods, fieldSelector="spec.nodeName=node-1")).made) == {"one"}
    assert names((await api.get(pods, fieldSelector="status.phase=Pending")).made) == {"one", "two"}
    assert names((await api.get(pods, fieldSelector="status.phase!=Pending")).made) == set()


async def test_pages_cover_everything_once(api: Api, namespace: str) -> None:
    path = await planets(api, namespace)
    everything = sorted(names((await api.get(path)).made))
    first = (await api.get(path, limit=2)).made
    assert [item["metadata"]["name"] for item in first["items"]] == everything[:2]
    assert first["metadata"]["remainingItemCount"] == len(everything) - 2
    second = (await api.get(path, limit=2, **{"continue": first["metadata"]["continue"]})).made
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["remainingItemCount"] == len(everything) - 4
    last = (await api.get(path, limit=2, **{"continue": second["metadata"]["continue"]})).made
    assert "continue" not in last["metadata"]
    assert "remainingItemCount" not in last["metadata"]
    seen = [item["metadata"]["name"] for page in (first, second, last) for item in page["items"]]
    assert seen == everything


async def test_pages_show_the_moment_of_the_first(api: Api, namespace: str) -> None:
    path = await planets(api, namespace)
    first = (await api.get(path, limit=1)).made
    await api.post(path, configmap("zzz-late"))
    await api.delete(f"{path}/venus")
    rest = (await api.get(path, **{"continue": first["metadata"]["continue"]})).made
    assert "zzz-late" not in names(rest)
    assert "venus" in names(rest)


async def test_pages_and_selectors_go_together(api: Api, namespace: str) -> None:
    path = await planets(api, namespace)
    page = (await api.get(path, limit=1, labelSelector="kind")).made
    assert "remainingItemCount" not in page["metadata"]
    found = names(page)
    while page["metadata"].get("continue"):
        page = (await api.get(path, limit=1, labelSelector="kind", **{"continue": page["metadata"]["continue"]})).made
        assert len(page["items"]) <= 1
        found |= names(page)
    assert found == {"mercury", "venus", "jupiter"}


async def test_a_garbage_continue_token_is_refused(api: Api, namespace: str) -> None:
    answer = await api.get(maps(namespace), limit=1, **{"continue": "garbage!"})
    assert answer.body == failure(
        400, "BadRequest", "invalid continue token: continue key is not valid: illegal base64 data at input byte 7"
    )


async def test_a_continue_token_has_a_form(api: Api, namespace: str) -> None:
    token = base64.urlsafe_b64encode(json.dumps({"v": "other"}).encode()).decode().rstrip("=")
    answer = await api.get(maps(namespace), limit=1, **{"continue": token})
    assert answer.body == failure(
        400,
        "BadRequest",
        "invalid continue token: continue key is not valid: server does not recognize this encoded version other",
    )


async def test_a_continue_token_excludes_a_version(api: Api, namespace: str) -> None:
    path = await planets(api, namespace)
    token = (await api.get(path, limit=1)).made["metadata"]["continue"]
    answer = await api.get(path, limit=1, resourceVersion="5", **{"continue": token})
    assert answer.body == failure(400, "BadRequest", "specifying resource version is not allowed when using continue")


@pytest.mark.parametrize("version", ["0", "same"])
async def test_any_version_is_served_from_now(api: Api, namespace: str, version: str) -> None:
    created = (await api.post(maps(namespace), configmap("one"))).made
    wanted = created["metadata"]["resourceVersion"] if version == "same" else version
    body = (await api.get(maps(namespace), resourceVersion=wanted)).made
    assert int(body["metadata"]["resourceVersion"]) >= int(wanted)
    if version == "same":
        assert names(body) == {"one"}


async def test_not_older_than_is_at_least_that_new(api: Api, namespace: str) -> None:
    created = (await api.post(maps(namespace), configmap("one"))).made["metadata"]
    await api.post(maps(namespace), configmap("two"))
    body = (
        await api.get(
            maps(namespace),
            resourceVersion=created["resourceVersion"],
            resourceVersionMatch="NotOlderThan",
        )
    ).made
    assert "one" in names(body)


async def test_exact_is_that_very_moment(api: Api, namespace: str) -> None:
    created = (await api.post(maps(namespace), configmap("one"))).made["metadata"]
    await api.post(maps(namespace), configmap("two"))
    await api.delete(f"{maps(namespace)}/one")
    body = (
        await api.get(maps(namespace), resourceVersion=created["resourceVersion"], resourceVersionMatch="Exact")
    ).made
    assert names(body) == {"one"}
    assert body["metadata"]["resourceVersion"] == created["resourceVersion"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            {"resourceVersion": "garbage"},
            (
                'invalid resource version: resourceVersion: Invalid value: "garbage": strconv.ParseUint: '
                'parsing "garbage": invalid syntax'
            ),
        ),
        ({"limit": "many"}, 'strconv.ParseInt: parsing "many": invalid syntax'),
        ({"timeoutSeconds": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
    ids=str,
)
async def test_a_malformed_query_is_refused(api: Api, namespace: str, query: Object, message: str) -> None:
    answer = await api.get(maps(namespace), **query)
    assert answer.body == failure(400, "BadRequest", message)


@pytest.mark.parametrize(
    ("query", "reason", "message"),
    [
        (
            {"resourceVersionMatch": "Exact"},
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "Sometimes", "resourceVersion": "1"},
            "FieldValueNotSupported",
            'Unsupported value: "Sometimes": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            "FieldValueForbidden",
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
    ],
    ids=str,
)
async def test_a_version_match_must_make_sense(
    api: Api, namespace: str, query: Object, reason: str, message: str
) -> None:
    answer = await api.get(maps(namespace), **query)
    cause = (reason, "resourceVersionMatch", message)
    assert answer.body == invalid("ListOptions", "", cause, group="meta.k8s.io")


async def test_a_version_from_the_future_times_out(api: Api, namespace: str) -> None:
    now = int((await api.get(maps(namespace))).made["metadata"]["resourceVersion"])
    answer = await api.get(maps(namespace), resourceVersion=str(now + 1_000_000))
    assert answer.status == 504
    assert answer.body["reason"] == "Timeout"
    assert answer.body["message"].startswith(f"Timeout: Too large resource version: {now + 1_000_000}, current: ")
    assert answer.causes == [("ResourceVersionTooLarge", "", "Too large resource version")]
    assert answer.body["details"]["retryAfterSeconds"] == 1


async def test_metadata_alone_can_be_listed(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one", labels={"a": "b"}))
    answer = await api.get(maps(namespace), accept=PARTIAL_LIST)
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.body
    assert (body["kind"], body["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    item = next(entry for entry in body["items"] if entry["metadata"]["name"] == "one")
    assert item["metadata"]["labels"] == {"a": "b"}
    assert "data" not in item
    assert (item["kind"], item["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
