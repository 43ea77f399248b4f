"""What kind of thing is talked about, and where it lives under an API server's URL.

A `Resource` is all the client needs to know of a kind: its group, version, plural and scope, and the type that its
objects decode to. Foreign kinds that Butler only touches decode to plain dicts. Paths are built here and only here,
so a name can never smuggle in another path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote

from butler.api import GROUP, VERSION
from butler.api.resource import CustomResource

if TYPE_CHECKING:
    from butler.api.objects import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One kind of object, e.g. `Resource("metallb.io", "v1beta1", "ipaddresspools", "IPAddressPool", dict)`."""

    group: str
    version: str
    plural: str
    kind: str
    type: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path below the server's URL; without a namespace, that of all namespaces."""
        if namespace and not self.namespaced:
            raise ValueError(f"{self} is not namespaced, but namespace {namespace!r} was given")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self} {name!r}: a namespace is needed")
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(_segment(subresource))
        return "/".join(parts)


Kind = TypeVar("Kind", bound=CustomResource)


def resource_of(kind: type[Kind]) -> Resource[Kind]:
    """One of Butler's own kinds, by its struct: `resource_of(NetworkPool)`."""
    return Resource(GROUP, VERSION, kind.definition.plural, kind.__name__, kind)


def untyped(group: str, version: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource[Json]:
    """A kind whose objects stay plain dicts."""
    return Resource(group, version, plural, kind, dict, namespaced)


class BadName(ValueError):
    """No object can have this name: sent on, it would address something else than was meant."""


def _segment(text: str) -> str:
    # The API server forbids these in names.
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise BadName(f"{text!r} cannot be part of an object's path")
    return quote(text, safe="")


NAMESPACES = untyped("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = untyped("", "v1", "nodes", "Node", namespaced=False)
SECRETS = untyped("", "v1", "secrets", "Secret")
CONFIGMAPS = untyped("", "v1", "configmaps", "ConfigMap")
SERVICES = untyped("", "v1", "services", "Service")
PODS = untyped("", "v1", "pods", "Pod")
EVENTS = untyped("", "v1", "events", "Event")
LEASES = untyped("coordination.k8s.io", "v1", "leases", "Lease")
DEPLOYMENTS = untyped("apps", "v1", "deployments", "Deployment")
SUBJECT_ACCESS_REVIEWS = untyped(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
CUSTOM_RESOURCE_DEFINITIONS = untyped(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
VALIDATING_WEBHOOK_CONFIGURATIONS = untyped(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
