"""What kubectl says when a server refuses something: word for word the same from both.

People search for these sentences, and scripts compare them. Some are kubectl's own; it says them only if discovery,
schemas and error bodies are as it expects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from local.terminal import config_map, network_pool

if TYPE_CHECKING:
    from local.terminal import Kubectl


class Refusal(NamedTuple):
    sent: dict[str, Any]
    said: str  # how it begins


POOL = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "NetworkPool"}
REFUSED: dict[str, Refusal] = {
    "unknown field": Refusal(
        {**config_map("a"), "dta": {}},
        'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a '
        'ConfigMap: strict decoding error: unknown field "dta"',
    ),
    "wrong type": Refusal(
        config_map("a", {"x": 5}),
        'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a '
        "ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ),
    "bad name": Refusal(
        config_map("A_b"), 'The ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase'
    ),
    "no name": Refusal(
        {"apiVersion": "v1", "kind": "ConfigMap"},
        'The ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "unknown kind": Refusal(
        {**config_map("a"), "kind": "Nothing"},
        'error: resource mapping not found for name: "a" namespace: "" from "STDIN": '
        'no matches for kind "Nothing" in version "v1"\nensure CRDs are installed first',
    ),
    "another namespace": Refusal(
        config_map("a", namespace="elsewhere"),
        'error: the namespace from the provided object "elsewhere" does not match the namespace',
    ),
    "several faults": Refusal(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a"},
            "spec": {
                "replicas": -1,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"containers": []}},
            },
        },
        'The Deployment "a" is invalid: \n'
        "* spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
        '* spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`\n'
        "* spec.template.spec.containers: Required value",
    ),
    "unknown field of ours": Refusal(
        network_pool("a", nosuch=1),
        'Error from server (BadRequest): error when creating "STDIN": NetworkPool in version "v1alpha1" cannot be '
        'handled as a NetworkPool: strict decoding error: unknown field "spec.nosuch"',
    ),
    "a rule of ours": Refusal(
        network_pool("a", "x"),
        'The NetworkPool "a" is invalid: \n'
        r"""* spec.cidr: Invalid value: "x": spec.cidr in body should match '^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$'"""
        '\n* spec.cidr: Invalid value: "x": must be a network in CIDR notation, such as 10.40.0.0/21',
    ),
    "a wrong type of ours": Refusal(
        network_pool("a", 5),
        'The NetworkPool "a" is invalid: \n'
        '* spec.cidr: Invalid value: "integer": spec.cidr in body must be of type string: "integer"\n'
        "* <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    ),
    "something required": Refusal(
        {**POOL, "metadata": {"name": "a"}, "spec": {}},
        'The NetworkPool "a" is invalid: \n'
        "* spec.cidr: Required value\n"
        "* <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said(kubectl: Kubectl, case: str) -> None:
    refusal = REFUSED[case]
    assert kubectl.refused("create", "-f", "-", stdin=refusal.sent).startswith(refusal.said)


def test_unknown_fields_are_let_through_if_asked(kubectl: Kubectl) -> None:
    odd = {**config_map("a"), "dta": {}}
    result = kubectl.run("create", "--validate=warn", "-f", "-", stdin=odd)
    assert (result.stdout, result.stderr) == ("configmap/a created\n", 'Warning: unknown field "dta"\n')
    assert kubectl("apply", "--validate=ignore", "-f", "-", stdin=network_pool("a", nosuch=1)).endswith("created\n")


def test_a_namespace_that_is_not_there(kubectl: Kubectl) -> None:
    refusal = kubectl.refused("create", "configmap", "a", "-n", "nowhere")
    assert refusal == 'error: failed to create configmap: namespaces "nowhere" not found'


LOOKED_FOR = {
    "configmap nothing": 'Error from server (NotFound): configmaps "nothing" not found',
    "networkpool nothing": 'Error from server (NotFound): networkpools.butler.butlerlabs.dev "nothing" not found',
    "nothing": 'error: the server doesn\'t have a resource type "nothing"',
    "configmaps --field-selector=nothing=1": (
        'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "", '
        'field selector "nothing=1": "nothing" is not a known field selector: only "metadata.name", '
        '"metadata.namespace"'
    ),
    "networkpools --field-selector=spec.cidr=1": (
        'Error from server (BadRequest): Unable to find "butler.butlerlabs.dev/v1alpha1, Resource=networkpools" that '
        'match label selector "", field selector "spec.cidr=1": field label not supported: spec.cidr'
    ),
    "configmaps -l x.in.(a": (
        'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector '
        "\"x in (a\", field selector \"\": unable to parse requirement: found '', expected: ',' or ')'"
    ),
    "--raw=/nothing": "Error from server (NotFound): the server could not find the requested resource",
    "--raw=/apis/nothing/v1": "Error from server (NotFound): the server could not find the requested resource",
}


@pytest.mark.parametrize("words", LOOKED_FOR)
def test_what_cannot_be_found_is_said(kubectl: Kubectl, words: str) -> None:
    assert kubectl.refused("get", *(word.replace(".in.", " in ") for word in words.split())) == LOOKED_FOR[words]


def test_a_port_out_of_range(kubectl: Kubectl) -> None:
    assert kubectl.refused("create", "service", "nodeport", "a", "--tcp=80", "--node-port=5") == (
        'error: failed to create NodePort service: Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 5: '
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    )


def test_a_field_that_never_changes(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "a", "--image=i", "--replicas=0")
    patch = '{"spec":{"selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}}}}}'
    refusal = kubectl.refused("patch", "deployment", "a", "-p", patch)
    assert refusal.startswith('The Deployment "a" is invalid: spec.selector: Invalid value: ')
    assert refusal.endswith(": field is immutable")


# Other users


def test_a_user_may_do_what_a_role_says_and_nothing_else(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=jane")
    kubectl("create", "configmap", "a")
    assert "configmap/a" in kubectl("get", "configmaps", "-o", "name", "--as=jane")
    assert kubectl.refused("delete", "configmap", "a", "--as=jane") == (
        'Error from server (Forbidden): configmaps "a" is forbidden: User "jane" cannot delete resource "configmaps" '
        f'in API group "" in the namespace "{kubectl.namespace}"'
    )
    assert kubectl.refused("get", "secrets", "--as=jane") == (
        'Error from server (Forbidden): secrets is forbidden: User "jane" cannot list resource "secrets" '
        f'in API group "" in the namespace "{kubectl.namespace}"'
    )
    assert kubectl("auth", "can-i", "get", "configmaps", "--as=jane") == "yes\n"
    assert kubectl.run("auth", "can-i", "delete", "configmaps", "--as=jane").stdout == "no\n"
    rules = kubectl.table("auth", "can-i", "--list", "--as=jane")
    assert ["configmaps", "[]", "[]", "[get list]"] in rules


def test_a_service_account_is_a_user_with_a_token(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "rolebinding", "robot", "--clusterrole=view", f"--serviceaccount={kubectl.namespace}:robot")
    name = f"system:serviceaccount:{kubectl.namespace}:robot"
    assert kubectl("auth", "can-i", "list", "pods", f"--as={name}") == "yes\n"
    assert f'User "{name}" cannot create resource "configmaps"' in kubectl.refused(
        "create", "configmap", "a", f"--as={name}"
    )


def test_no_user_grants_more_than_they_have(kubectl: Kubectl) -> None:
    kubectl("create", "role", "binder", "--verb=create", "--resource=roles.rbac.authorization.k8s.io")
    kubectl("create", "rolebinding", "binder", "--role=binder", "--user=jane")
    refusal = kubectl.refused("create", "role", "more", "--verb=get", "--resource=secrets", "--as=jane")
    assert (
        'is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not'
        in (refusal)
    )
