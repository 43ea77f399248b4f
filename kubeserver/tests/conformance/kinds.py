"""The objects that conformance cases are made of: small built-ins and three custom resource definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.wire import Object

GROUP = "conformance.example.com"


def configmap(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {"key": "value"},
    }


def widget(name: str, spec: Object | None = None, **metadata: Any) -> Object:
    return custom("Widget", name, spec, **metadata)


def gadget(name: str, spec: Object | None = None, **metadata: Any) -> Object:
    return custom("Gadget", name, spec, **metadata)


def rule(name: str, spec: Object | None = None, **metadata: Any) -> Object:
    return custom("Rule", name, spec, **metadata)


def custom(kind: str, name: str, spec: Object | None, **metadata: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec or {},
    }


def service(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def pod(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}], **spec},
    }


def deployment(name: str, **spec: Any) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
            },
            **spec,
        },
    }


def definition(kind: str, schema: Object, *, group: str = GROUP, names: Object | None = None, **version: Any) -> Object:
    """A namespaced definition with one version; `schema` is that of the properties at the top."""
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, **(names or {})},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
                    **version,
                }
            ],
        },
    }


STRING: Object = {"type": "string"}
INTEGER: Object = {"type": "integer"}

WIDGETS = definition(
    "Widget",
    {
        "spec": {
            "type": "object",
            "properties": {
                "size": INTEGER,
                "color": STRING,
                "replicas": INTEGER,
                "nested": {"type": "object", "properties": {"a": STRING, "b": STRING}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": STRING, "port": INTEGER},
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
                "steps": {"type": "array", "items": STRING},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": STRING,
                "replicas": INTEGER,
                "selector": STRING,
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": STRING, "status": STRING},
                    },
                },
            },
        },
    },
    names={"shortNames": ["wd"], "categories": ["conforming"], "listKind": "WidgetList"},
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    additionalPrinterColumns=[
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
)

GADGETS = definition(
    "Gadget",
    {
        "spec": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 5},
                "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
                "code": {"type": "string", "pattern": "^[a-z]+$"},
                "count": {"type": "integer", "minimum": 1, "maximum": 9},
                "open": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                "even": {"type": "integer", "multipleOf": 2},
                "ratio": {"type": "number"},
                "small": {"type": "integer", "format": "int32"},
                "on": {"type": "boolean"},
                "when": {"type": "string", "format": "date-time"},
                "lasts": {"type": "string", "format": "duration"},
                "address": {"type": "string", "format": "ipv4"},
                "id": {"type": "string", "format": "uuid"},
                "raw": {"type": "string", "format": "byte"},
                "port": {"x-kubernetes-int-or-string": True},
                "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": STRING},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
                "map": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": STRING, "value": STRING},
                    },
                },
                "labels": {"type": "object", "maxProperties": 1, "additionalProperties": STRING},
                "maybe": {"type": "string", "nullable": True},
                "maybeDefault": {"type": "string", "nullable": True, "default": "set"},
                "nullDefault": {"type": "string", "default": "filled"},
                "nested": {
                    "type": "object",
                    "default": {},
                    "properties": {
                        "depth": {"type": "integer", "default": 3},
                        "kept": STRING,
                    },
                },
                "rows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"width": {"type": "integer", "default": 10}, "title": STRING},
                    },
                },
                "either": {
                    "type": "object",
                    "properties": {"a": STRING, "b": STRING},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                "unlike": {"type": "string", "not": {"enum": ["forbidden"]}},
                "free": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"typed": {"type": "object", "properties": {"known": STRING}}},
                },
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
    },
)

RULES = definition(
    "Rule",
    {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high"},
                {
                    "rule": "!has(self.word) || self.word != 'secret'",
                    "message": "the word is secret",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".word",
                },
                {
                    "rule": "!has(self.nick) || self.nick.size() < 5",
                    "messageExpression": "'nick ' + self.nick + ' is too long'",
                },
                {"rule": "has(self.owner) == has(oldSelf.owner)", "message": "owner may not come or go"},
            ],
            "properties": {
                "low": INTEGER,
                "high": INTEGER,
                "word": {"type": "string", "maxLength": 20},
                "nick": {"type": "string", "maxLength": 20},
                "owner": STRING,
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
                },
                "once": {
                    "type": "string",
                    "x-kubernetes-validations": [
                        {
                            "rule": "oldSelf.hasValue() || self == 'first'",
                            "optionalOldSelf": True,
                            "message": "once must start as first",
                        }
                    ],
                },
                "address": {
                    "type": "string",
                    "maxLength": 45,
                    "x-kubernetes-validations": [{"rule": "isIP(self)", "message": "not an address"}],
                },
                "network": {
                    "type": "string",
                    "maxLength": 45,
                    "x-kubernetes-validations": [
                        {"rule": "isCIDR(self) && cidr(self).prefixLength() <= 28", "message": "too small"}
                    ],
                },
                "servers": {
                    "type": "array",
                    "maxItems": 5,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "maxLength": 10},
                            "weight": {"type": "integer"},
                        },
                        "x-kubernetes-validations": [{"rule": "self.weight > 0", "message": "weight must be positive"}],
                    },
                    "x-kubernetes-validations": [
                        {
                            "rule": "self.all(a, self.exists_one(b, b.name == a.name))",
                            "message": "names must differ",
                        }
                    ],
                },
                "quantity": {
                    "type": "string",
                    "maxLength": 10,
                    "x-kubernetes-validations": [
                        {"rule": "quantity(self).isLessThan(quantity('1Gi'))", "message": "too much"}
                    ],
                },
            },
        },
    },
)
