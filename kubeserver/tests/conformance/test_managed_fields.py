"""The record of who set which field, exactly as it stands in the object."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import GROUP, configmap, deployment, widget
from conformance.wire import invalid

if TYPE_CHECKING:
    from conformance.wire import Api, Object


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def entries(body: Object) -> list[Object]:
    """The entries by manager, without their times, which are checked to be times."""
    found: list[Object] = []
    for entry in body["metadata"]["managedFields"]:
        kept: dict[str, Any] = dict(entry)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", kept.pop("time"))
        assert kept.pop("fieldsType") == "FieldsV1"
        found.append(kept)
    return sorted(found, key=lambda entry: (entry["manager"], entry.get("subresource", "")))


async def test_create_is_an_update_of_everything_sent(api: Api, namespace: str) -> None:
    body = configmap("one", {"a": "1"}, labels={"x": "y"}, annotations={"n": "m"})
    created = (await api.post(maps(namespace), body, fieldManager="maker")).made
    assert entries(created) == [
        {
            "manager": "maker",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {
                    "f:annotations": {".": {}, "f:n": {}},
                    "f:labels": {".": {}, "f:x": {}},
                },
            },
        }
    ]


async def test_without_a_name_the_manager_is_the_user_agent(api: Api, namespace: str) -> None:
    session = with_agent(api, "my-tool/v1.2 (linux)")
    created = (await session.post(maps(namespace), configmap("one"))).made
    assert [entry["manager"] for entry in entries(created)] == ["my-tool"]


def with_agent(api: Api, agent: str) -> Api:
    return type(api)(api.session, api.url, {**api.headers, "User-Agent": agent})


async def test_an_update_by_another_gets_its_own_entry(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one", {"a": "1", "b": "1"}), fieldManager="maker")
    body = (await api.merge(f"{maps(namespace)}/one", {"data": {"a": "2", "c": "3"}}, fieldManager="editor")).made
    assert entries(body) == [
        {
            "manager": "editor",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsV1": {"f:data": {"f:a": {}, "f:c": {}}},
        },
        {
            "manager": "maker",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsV1": {"f:data": {".": {}, "f:b": {}}},
        },
    ]


async def test_an_applier_owns_what_it_applied(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    spec = {
        "size": 1,
        "nested": {"a": "x"},
        "ports": [{"name": "p", "port": 1}],
        "tags": ["t"],
        "steps": ["s"],
        "free": {"k": [1]},
    }
    body = (await api.apply(path, widget("one", spec, labels={"l": "1"}))).made
    assert entries(body) == [
        {
            "manager": "applier",
            "operation": "Apply",
            "apiVersion": f"{GROUP}/v1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {
                    "f:free": {"f:k": {}},
                    "f:nested": {"f:a": {}},
                    "f:ports": {'k:{"name":"p"}': {".": {}, "f:name": {}, "f:port": {}}},
                    "f:size": {},
                    "f:steps": {},
                    "f:tags": {'v:"t"': {}},
                },
            },
        }
    ]


async def test_a_status_write_is_kept_apart(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one", {"size": 1}), fieldManager="same")
    body = (await api.merge(f"{path}/one/status", {"status": {"phase": "Done"}}, fieldManager="same")).made
    assert entries(body) == [
        {
            "manager": "same",
            "operation": "Update",
            "apiVersion": f"{GROUP}/v1",
            "fieldsV1": {"f:spec": {".": {}, "f:size": {}}},
        },
        {
            "manager": "same",
            "operation": "Update",
            "apiVersion": f"{GROUP}/v1",
            "fieldsV1": {"f:status": {".": {}, "f:phase": {}}},
            "subresource": "status",
        },
    ]


async def test_defaults_belong_to_who_caused_them(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    body = (await api.post(path, deployment("one"), fieldManager="maker")).made
    (entry,) = entries(body)
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:progressDeadlineSeconds": {},
            "f:replicas": {},
            "f:revisionHistoryLimit": {},
            "f:selector": {},
            "f:strategy": {
                "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
                "f:type": {},
            },
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"main"}': {
                            ".": {},
                            "f:image": {},
                            "f:imagePullPolicy": {},
                            "f:name": {},
                            "f:resources": {},
                            "f:terminationMessagePath": {},
                            "f:terminationMessagePolicy": {},
                        }
                    },
                    "f:dnsPolicy": {},
                    "f:restartPolicy": {},
                    "f:schedulerName": {},
                    "f:securityContext": {},
                    "f:terminationGracePeriodSeconds": {},
                },
            },
        }
    }


async def test_an_applier_does_not_own_defaults(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/one"
    (entry,) = entries((await api.apply(path, deployment("one"))).made)
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}},
            },
        }
    }


async def test_owner_references_and_finalizers_are_owned_one_by_one(api: Api, namespace: str) -> None:
    owner = (await api.post(maps(namespace), configmap("owner"))).made["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    body = {"metadata": {"name": "one", "finalizers": ["example.com/f"], "ownerReferences": [reference]}}
    created = (await api.post(maps(namespace), body)).made
    (entry,) = entries(created)
    assert entry["fieldsV1"] == {
        "f:metadata": {
            "f:finalizers": {".": {}, 'v:"example.com/f"': {}},
            "f:ownerReferences": {".": {}, f'k:{{"uid":"{owner}"}}': {}},
        }
    }


async def test_the_record_can_be_wiped(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one"))
    body = (await api.merge(f"{maps(namespace)}/one", {"metadata": {"managedFields": [{}]}})).made
    assert "managedFields" not in body["metadata"]


async def test_leaving_the_record_out_of_a_replace_keeps_it(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one", {"a": "1"}), fieldManager="maker")
    body = (await api.put(f"{maps(namespace)}/one", configmap("one", {"a": "1", "b": "2"}), fieldManager="x")).made
    assert [entry["manager"] for entry in entries(body)] == ["maker", "x"]


async def test_removing_a_field_removes_it_from_the_record(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one", {"a": "1", "b": "2"}), fieldManager="maker")
    body = (await api.merge(f"{maps(namespace)}/one", {"data": {"a": None}}, fieldManager="editor")).made
    assert [(entry["manager"], entry["fieldsV1"]) for entry in entries(body)] == [
        ("maker", {"f:data": {".": {}, "f:b": {}}})
    ]


@pytest.mark.parametrize(("manager", "code"), [("bad\nname", "U+000A"), ("bad\tname", "U+0009")])
async def test_a_manager_name_is_printable(api: Api, namespace: str, manager: str, code: str) -> None:
    answer = await api.post(maps(namespace), configmap("one"), fieldManager=manager)
    message = f"Invalid value: {json.dumps(manager)}: invalid character {code} (at position 3)"
    assert answer.body == invalid(
        "CreateOptions", "", ("FieldValueInvalid", "fieldManager", message), group="meta.k8s.io"
    )


async def test_unchanged_fields_stay_with_their_first_owner(api: Api, namespace: str) -> None:
    created = (await api.post(maps(namespace), configmap("one", {"a": "1"}), fieldManager="maker")).made
    created["data"]["b"] = "2"
    body = (await api.put(f"{maps(namespace)}/one", created, fieldManager="other")).made
    assert [(entry["manager"], entry["fieldsV1"]) for entry in entries(body)] == [
        ("maker", {"f:data": {".": {}, "f:a": {}}}),
        ("other", {"f:data": {"f:b": {}}}),
    ]
