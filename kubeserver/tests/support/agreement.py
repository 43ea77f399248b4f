"""Kinds and random objects for comparing ownership with a real Kubernetes (tests/agreement/test_apply_agreement.py).

One custom kind has every list and map type; Services, Deployments and ConfigMaps are what people apply. Values
come from small alphabets, so that managers meet on the same fields, and everything generated is valid.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
Random = random.Random

TEXT: Json = {"type": "string"}
INNER: Json = {"type": "object", "properties": {"b": TEXT}}
PAIR: Json = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
ATOM: Json = {"type": "object", "properties": {"a": TEXT}}
NAMES: Json = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": TEXT,
                "number": {"type": "integer"},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean"},
                "size": {"x-kubernetes-int-or-string": True},
                "maybe": {"type": "object", "nullable": True, "properties": {"a": TEXT, "b": TEXT}},
                "struct": {"type": "object", "properties": {"a": TEXT, "inner": INNER}},
                "map": {"type": "object", "additionalProperties": TEXT},
                "maps": {"type": "object", "additionalProperties": PAIR},
                "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
                "names": NAMES,
                "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
                "atoms": {"type": "array", "x-kubernetes-list-type": "atomic", "items": ATOM},
                "plain": {"type": "array", "items": TEXT},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": TEXT,
                            "options": {"type": "object", "additionalProperties": TEXT},
                            "hosts": NAMES,
                        },
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "half": {"type": "object", "properties": {"a": TEXT}, "x-kubernetes-preserve-unknown-fields": True},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": TEXT,
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "required": ["type"], "properties": {"type": TEXT, "status": TEXT}},
                },
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        },
    },
}  # fmt: skip

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "everythings.agreement.example.com"},
    "spec": {
        "group": "agreement.example.com",
        "scope": "Namespaced",
        "names": {"plural": "everythings", "kind": "Everything"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
            for version in ("v1", "v1beta1")
        ],
    },
}  # fmt: skip


def some(rng: Random, parts: dict[str, Callable[[], Any]], share: float = 0.4) -> Json:
    """An object with some of its possible members."""
    return {name: make() for name, make in parts.items() if rng.random() < share}


def texts(rng: Random) -> str:
    return rng.choice(["x", "y", "z"])


def text_map(rng: Random) -> Json:
    return some(rng, {name: lambda: texts(rng) for name in ("k1", "k2", "k/3")}, 0.5)


def sample(rng: Random, values: list[Any]) -> list[Any]:
    return rng.sample(values, rng.randint(0, len(values)))


def custom_spec(rng: Random) -> Json:
    def port(number: int, protocol: str | None) -> Json:
        found = {"port": number} | ({"protocol": protocol} if protocol else {})
        more: dict[str, Callable[[], Any]] = {
            "name": lambda: texts(rng),
            "options": lambda: text_map(rng),
            "hosts": lambda: sample(rng, ["a", "b", "c<d"]),
        }
        return found | some(rng, more)

    def ports() -> list[Json]:
        keys = sample(rng, [(80, None), (80, "UDP"), (81, "TCP"), (82, None)])
        return [port(*key) for key in keys]

    def free() -> Any:
        return rng.choice(
            [1, True, "x", {}, {"a": 1}, {"a": True, "b": {"c": [1, {"d": 2}]}}, [], [1, 2], {"a": {"x": "y"}}]
        )

    return some(
        rng,
        {
            "text": lambda: texts(rng),
            "number": lambda: rng.randint(0, 2),
            "ratio": lambda: rng.choice([1, 1.0, 0.5]),
            "flag": lambda: rng.random() < 0.5,
            "size": lambda: rng.choice([1, "1", "10%"]),
            "maybe": lambda: rng.choice([None, {}, {"a": "x"}, {"a": "y", "b": "z"}]),
            "struct": lambda: some(
                rng, {"a": lambda: texts(rng), "inner": lambda: some(rng, {"b": lambda: texts(rng)}, 0.7)}, 0.6
            ),
            "map": lambda: text_map(rng),
            "maps": lambda: some(
                rng,
                {name: lambda: some(rng, {"a": lambda: texts(rng), "b": lambda: texts(rng)}) for name in ("m1", "m2")},
                0.6,
            ),
            "selector": lambda: text_map(rng),
            "names": lambda: sample(rng, ["a", "b", "c", "d&e"]),
            "numbers": lambda: sample(rng, [1, 2, 10]),
            "atoms": lambda: [some(rng, {"a": lambda: texts(rng)}) for _ in range(rng.randint(0, 2))],
            "plain": lambda: sample(rng, ["a", "b"]),
            "ports": ports,
            "free": lambda: some(rng, dict.fromkeys(("f1", "f2"), free), 0.6),
            "half": lambda: some(rng, {"a": lambda: texts(rng), "b": free}, 0.6),
            "any": free,
        },
        0.35,
    )  # fmt: skip


def custom_status(rng: Random) -> Json:
    return some(
        rng,
        {
            "phase": lambda: texts(rng),
            "conditions": lambda: [
                {"type": kind} | some(rng, {"status": lambda: texts(rng)}) for kind in sample(rng, ["A", "B"])
            ],
            "counts": lambda: some(rng, {"a": lambda: rng.randint(0, 2), "b": lambda: 1}),
        },
        0.6,
    )


def config_map(rng: Random) -> Json:
    return some(rng, {"data": lambda: text_map(rng), "binaryData": lambda: some(rng, {"b1": lambda: "eA=="})}, 0.7)


def service(rng: Random) -> Json:
    def port(number: int, protocol: str | None) -> Json:
        name = f"p{number}{(protocol or 'tcp').lower()}"
        found = {"port": number, "name": name} | ({"protocol": protocol} if protocol else {})
        return found | some(rng, {"targetPort": lambda: rng.choice([8080, "http"])})

    keys = sample(rng, [(80, None), (80, "UDP"), (81, "TCP")]) or [(80, None)]
    spec = {"ports": [port(*key) for key in keys]}
    spec |= some(
        rng,
        {
            "selector": lambda: text_map(rng),
            "publishNotReadyAddresses": lambda: True,
            "sessionAffinity": lambda: "None",
        },
    )
    return {"spec": spec}


def deployment(rng: Random) -> Json:
    def container(name: str) -> Json:
        ports = [
            {"containerPort": number, "protocol": "TCP"} if rng.random() < 0.5 else {"containerPort": number}
            for number in sample(rng, [80, 81])
        ]
        return {"name": name, "image": rng.choice(["i:1", "i:2"])} | some(
            rng,
            {
                "env": lambda: [{"name": item, "value": texts(rng)} for item in sample(rng, ["A", "B"])],
                "ports": lambda: ports,
                "args": lambda: sample(rng, ["a", "b"]),
                "resources": lambda: {"limits": {"cpu": rng.choice(["1", "500m"])}},
            },
        )

    spec = {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"} | text_map(rng)},
            "spec": {"containers": [container(name) for name in sample(rng, ["c1", "c2"]) or ["c1"]]},
        },
    }
    spec |= some(rng, {"replicas": lambda: rng.randint(0, 2), "paused": lambda: rng.random() < 0.5})
    return {"spec": spec}


def service_status(rng: Random) -> Json:
    return {
        "loadBalancer": some(rng, {"ingress": lambda: [{"ip": item} for item in sample(rng, ["10.1.1.1", "10.1.1.2"])]})
    }


def deployment_status(rng: Random) -> Json:
    found = {"replicas": rng.randint(0, 2), "observedGeneration": 1}
    kinds = sample(rng, ["Available", "Progressing"])
    return found | {"conditions": [{"type": kind, "status": rng.choice(["True", "False"])} for kind in kinds]}


@dataclass(frozen=True)
class Kind:
    """A kind under test: where it lives, what a request may say, and what the server fills in on its own."""

    api_version: str
    kind: str
    plural: str
    body: Callable[[Random], Json]
    status: Callable[[Random], Json] | None = None
    main_reset: tuple[str, ...] = ()
    status_reset: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()  # of spec, set by the server after ownership was decided
    strategic: bool = True

    def in_version(self, api_version: str) -> Kind:
        return replace(self, api_version=api_version)

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        parts = [root, "namespaces", namespace, self.plural, name, subresource]
        return "/".join(part for part in parts if part)

    def request(self, rng: Random, namespace: str, name: str, *, labels: float = 0.4) -> Json:
        """A random object as a client would send it."""
        metadata: Json = {"name": name, "namespace": namespace}
        if rng.random() < labels:
            metadata["labels"] = text_map(rng)
        if rng.random() < 0.2:
            metadata["annotations"] = text_map(rng)
        if rng.random() < 0.1:
            metadata["finalizers"] = sample(rng, ["example.com/a", "example.com/b"])
        found = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **self.body(rng)}
        return copy.deepcopy(found)


CUSTOM = Kind(
    "agreement.example.com/v1",
    "Everything",
    "everythings",
    lambda rng: {"spec": custom_spec(rng)},
    status=custom_status,
    main_reset=("status",),
    status_reset=("metadata", "spec"),
    strategic=False,
)
KINDS = {
    "custom": CUSTOM,
    "configmap": Kind("v1", "ConfigMap", "configmaps", config_map),
    "service": Kind(
        "v1",
        "Service",
        "services",
        service,
        status=service_status,
        main_reset=("status",),
        status_reset=("spec",),
        filled=("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"),
    ),
    "deployment": Kind(
        "apps/v1",
        "Deployment",
        "deployments",
        deployment,
        status=deployment_status,
        main_reset=("status",),
        status_reset=("spec", "metadata.labels"),
    ),
}
