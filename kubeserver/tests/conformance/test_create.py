"""Making objects: names, namespaces, bodies, dry runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, configmap, widget
from conformance.wire import failure, invalid, unexplained

if TYPE_CHECKING:
    from conformance.wire import Api, Object

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

UNRECOGNIZED = (
    "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: "
)
UNFIT = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def test_a_created_object_gets_its_metadata(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new", {"a": "b"}))
    assert answer.status == 201
    metadata = answer.body["metadata"]
    assert metadata["name"] == "new"
    assert metadata["namespace"] == namespace
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert re.fullmatch(r"\d+", metadata["resourceVersion"])
    assert "generation" not in metadata
    assert "selfLink" not in metadata
    assert answer.body["data"] == {"a": "b"}
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_created_custom_resource_has_generation_one(api: Api, namespace: str, widgets: str) -> None:
    answer = await api.post(f"{widgets}/namespaces/{namespace}/widgets", widget("new", {"size": 1}))
    assert answer.status == 201
    assert answer.body["metadata"]["generation"] == 1


async def test_what_was_created_can_be_read(api: Api, namespace: str) -> None:
    created = (await api.post(maps(namespace), configmap("new"))).body
    answer = await api.get(f"{maps(namespace)}/new")
    assert answer.status == 200
    assert answer.body == created


async def test_the_server_ignores_metadata_that_is_its_own(api: Api, namespace: str) -> None:
    own: Object = {
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/somewhere",
        "generation": 7,
    }
    metadata = (await api.post(maps(namespace), configmap("new", **own))).made["metadata"]
    assert metadata["uid"] != own["uid"]
    assert metadata["creationTimestamp"] != own["creationTimestamp"]
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & set(metadata)


async def test_a_resource_version_may_not_be_set_on_create(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new", resourceVersion="1"))
    assert answer.status == 500
    assert answer.body == unexplained(500, "resourceVersion should not be set on objects to be created")


async def test_kind_and_version_may_be_left_out(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), {"metadata": {"name": "bare"}})
    assert answer.status == 201
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")


async def test_generate_name_appends_five_letters(api: Api, namespace: str) -> None:
    body = {"metadata": {"generateName": "many-"}}
    names = [(await api.post(maps(namespace), body)).made["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    for name in names:
        assert re.fullmatch(r"many-[bcdfghjklmnpqrstvwxz2456789]{5}", name)


async def test_generate_name_is_cut_to_fit(api: Api, namespace: str) -> None:
    body = {"metadata": {"generateName": "x" * 250}}
    name = (await api.post(maps(namespace), body)).made["metadata"]["name"]
    assert len(name) == 63


async def test_a_name_wins_over_generate_name(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "given", "generateName": "many-"}}
    metadata = (await api.post(maps(namespace), body)).made["metadata"]
    assert (metadata["name"], metadata["generateName"]) == ("given", "many-")


async def test_a_name_can_be_used_once(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("taken"))
    answer = await api.post(maps(namespace), configmap("taken"))
    assert answer.status == 409
    assert answer.body == failure(
        409, "AlreadyExists", 'configmaps "taken" already exists', name="taken", kind="configmaps"
    )


async def test_a_custom_resource_that_exists_is_named_with_its_group(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("taken"))
    assert (await api.post(path, widget("taken"))).body == failure(
        409,
        "AlreadyExists",
        f'widgets.{GROUP} "taken" already exists',
        name="taken",
        group=GROUP,
        kind="widgets",
    )


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "end.", "sp ace"])
async def test_a_bad_name_is_refused(api: Api, namespace: str, name: str) -> None:
    answer = await api.post(maps(namespace), configmap(name))
    assert answer.body == invalid(
        "ConfigMap", name, ("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": {SUBDOMAIN}')
    )
    assert answer.status == 422


async def test_a_name_is_required(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), {"data": {}})
    assert answer.body == invalid(
        "ConfigMap",
        "",
        ("FieldValueRequired", "metadata.name", "Required value: name or generateName is required"),
    )


async def test_a_long_name_is_refused(api: Api, namespace: str) -> None:
    name = "x" * 254
    answer = await api.post(maps(namespace), configmap(name))
    assert answer.body == invalid(
        "ConfigMap",
        name,
        (
            "FieldValueInvalid",
            "metadata.name",
            f'Invalid value: "{name}": must be no more than 253 characters',
        ),
    )


@pytest.mark.parametrize(("name", "problem"), [("a.b", "must not contain dots"), ("A", LABEL)])
async def test_a_namespace_name_is_a_label(api: Api, name: str, problem: str) -> None:
    answer = await api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.body == invalid(
        "Namespace", name, ("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": {problem}')
    )


async def test_a_service_name_is_a_label(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "Up"}, "spec": {"ports": [{"port": 1}]}}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/services", body)
    assert answer.body == invalid(
        "Service", "Up", ("FieldValueInvalid", "metadata.name", f'Invalid value: "Up": {LABEL}')
    )


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        (
            {"labels": {"ok": "not ok"}},
            "metadata.labels",
            (
                'Invalid value: "not ok": a valid label must be an empty string or consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
        (
            {"labels": {"a/b/c": ""}},
            "metadata.labels",
            (
                "Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or "
                "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an "
                "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ),
        ),
        (
            {"annotations": {"": "x"}},
            "metadata.annotations",
            'Invalid value: "": name part must be non-empty',
        ),
        (
            {"finalizers": ["not-qualified"]},
            "metadata.finalizers[0]",
            'Invalid value: "not-qualified": name is neither a standard finalizer name nor is it fully qualified',
        ),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}]},
            "metadata.ownerReferences[0].uid",
            "Required value: must not be empty",
        ),
    ],
    ids=["label value", "label key", "annotation key", "finalizer", "owner"],
)
async def test_bad_metadata_is_refused(api: Api, namespace: str, metadata: Object, field: str, message: str) -> None:
    answer = await api.post(maps(namespace), configmap("bad", **metadata))
    assert answer.status == 422
    reason = "FieldValueRequired" if message.startswith("Required") else "FieldValueInvalid"
    assert (reason, field, message) in answer.causes


async def test_a_missing_namespace_is_not_found(api: Api, unique: str) -> None:
    answer = await api.post(maps(f"missing-{unique}"), configmap("new"))
    assert answer.status == 404
    assert answer.body == failure(
        404,
        "NotFound",
        f'namespaces "missing-{unique}" not found',
        name=f"missing-{unique}",
        kind="namespaces",
    )


async def test_the_namespace_in_the_body_must_be_that_of_the_path(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new", namespace="other"))
    assert answer.status == 400
    assert answer.body == failure(
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )


async def test_a_namespaced_object_needs_a_namespace_in_the_path(api: Api) -> None:
    answer = await api.post("/api/v1/configmaps", configmap("new"))
    assert answer.status == 405
    assert answer.body == failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    ) | {"details": {}}


async def test_the_kind_in_the_body_must_fit(api: Api, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new"}}
    assert (await api.post(maps(namespace), body)).body == failure(
        400,
        "BadRequest",
        'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): '
        "unknown conversion",
    )


async def test_an_unknown_kind_in_the_body_is_refused(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new") | {"kind": "Nonsense"})
    assert answer.status == 400
    assert answer.body["reason"] == "BadRequest"
    assert answer.body["message"].startswith(
        'Nonsense in version "v1" cannot be handled as a ConfigMap: '
        'no kind "Nonsense" is registered for version "v1" in scheme "'
    )


async def test_the_version_in_the_body_must_be_that_of_the_path(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new") | {"apiVersion": "apps/v1"})
    assert answer.status == 400
    assert answer.body["reason"] == "BadRequest"
    assert answer.body["message"].startswith(
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        'no kind "ConfigMap" is registered for version "apps/v1" in scheme "'
    )


async def test_the_kind_of_a_custom_resource_must_fit(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    answer = await api.post(path, widget("new") | {"kind": "Other"})
    assert answer.body == invalid(
        "Other",
        "new",
        ("FieldValueInvalid", "kind", 'Invalid value: "Other": must be Widget'),
        group=GROUP,
    )


async def test_the_version_of_a_custom_resource_must_fit(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    answer = await api.post(path, widget("new") | {"apiVersion": f"{GROUP}/v2"})
    assert answer.body == failure(
        400,
        "BadRequest",
        "the API version in the data (conformance.example.com/v2) does not match the expected API version "
        "(conformance.example.com/v1)",
    )


async def test_a_custom_resource_must_say_what_it_is(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    answer = await api.post(path, {"metadata": {"name": "new"}})
    assert answer.body == failure(
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in "
        """'{"metadata": {"name": "new"}}' ({"metadata": {"name": "new"}})""",
    )


async def test_a_body_is_needed(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), "")
    assert answer.body == failure(400, "BadRequest", UNRECOGNIZED + "unexpected end of JSON input (<empty>)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", UNRECOGNIZED + "unexpected end of JSON input ({)"),
        ("not json", UNRECOGNIZED + "invalid character 'o' in literal null (expecting 'u') (6e6f74206a736f6e)"),
        ('{"a" 1}', UNRECOGNIZED + """invalid character '1' after object key ({"a" 1})"""),
        (
            '{"a": 1,}',
            UNRECOGNIZED + """invalid character '}' looking for beginning of object key string ({"a": 1,})""",
        ),
        ('{"a": tru}', UNRECOGNIZED + """invalid character '}' in literal true (expecting 'e') ({"a": tru})"""),
        ('{"a": 1} trailing', UNRECOGNIZED + """invalid character 't' after top-level value ({"a": 1} trailing)"""),
        (
            '{"metadata": {"name": 5}}',
            UNFIT + "number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            '{"metadata": {"name": "x"}, "data": {"a": 5}}',
            UNFIT + "number into Go struct field ConfigMap.data of type string",
        ),
        (
            '{"metadata": {"name": "x"}, "data": []}',
            UNFIT + "array into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            '{"metadata": {"name": "x", "labels": {"a": true}}}',
            UNFIT + "bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            '{"metadata": {"name": "x"}, "immutable": "yes"}',
            UNFIT + "string into Go struct field ConfigMap.immutable of type bool",
        ),
    ],
)
async def test_a_malformed_body_is_a_bad_request(api: Api, namespace: str, text: str, message: str) -> None:
    answer = await api.post(maps(namespace), text)
    assert answer.body == failure(400, "BadRequest", message)


async def test_a_yaml_body_is_understood(api: Api, namespace: str) -> None:
    text = "metadata:\n  name: from-yaml\ndata:\n  a: b\n"
    answer = await api.post(maps(namespace), text, content_type="application/yaml")
    assert answer.made["data"] == {"a": "b"}


async def test_an_answer_can_be_had_in_yaml(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("new", {"a": "b"}))
    answer = await api.get(f"{maps(namespace)}/new", accept="application/yaml")
    assert answer.headers["Content-Type"] == "application/yaml"
    assert answer.text.startswith("apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n")


async def test_an_unknown_media_type_is_refused(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), "name=x", content_type="application/x-www-form-urlencoded")
    assert answer.status == 415
    assert answer.body["reason"] == "UnsupportedMediaType"
    assert answer.body["message"].startswith(
        "the body of the request was in an unknown format - accepted media types include: application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf"
    )


async def test_a_dry_run_answers_as_if_and_keeps_nothing(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("ghost"), dryRun="All")
    assert answer.status == 201
    assert answer.body["metadata"]["uid"]
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await api.get(f"{maps(namespace)}/ghost")).status == 404


async def test_a_dry_run_finds_errors(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("taken"))
    assert (await api.post(maps(namespace), configmap("taken"), dryRun="All")).status == 409
    assert (await api.post(maps(namespace), configmap("Bad"), dryRun="All")).status == 422


async def test_a_dry_run_has_one_form(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new"), dryRun="Some")
    assert answer.status == 422
    assert answer.body == invalid(
        "CreateOptions",
        "",
        (
            "FieldValueNotSupported",
            "dryRun",
            'Unsupported value: ["Some"]: supported values: "All"',
        ),
        group="meta.k8s.io",
    )


async def test_a_field_manager_has_a_longest_name(api: Api, namespace: str) -> None:
    answer = await api.post(maps(namespace), configmap("new"), fieldManager="m" * 129)
    assert answer.body == invalid(
        "CreateOptions",
        "",
        (
            "FieldValueTooLong",
            "fieldManager",
            "Too long: may not be more than 128 bytes",
        ),
        group="meta.k8s.io",
    )
