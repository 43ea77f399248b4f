"""People with few rights, as an administrator gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.objects import HOME

if TYPE_CHECKING:
    from control_planes import ControlPlane

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "butler.butlerlabs.dev"


def grant(
    plane: ControlPlane, user: str, verbs: list[str], resources: list[str], *, namespace: str = HOME, group: str = GROUP
) -> None:
    """Allow a user these verbs in one namespace."""
    name = f"{user}-{'-'.join(resources)}-{'-'.join(verbs)}"[:60].strip("-")
    rules = [{"apiGroups": [group], "resources": resources, "verbs": verbs}]
    role = {"metadata": {"name": name}, "rules": rules}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    for plural, body in (("roles", role), ("rolebindings", binding)):
        status, made = plane.request("POST", f"{RBAC}/namespaces/{namespace}/{plural}", body)
        assert status == 201, made


def reader(plane: ControlPlane, user: str) -> str:
    """A user who may read pools, allocations and providers, and change none of them."""
    grant(plane, user, ["get", "list", "watch"], ["networkpools", "ipallocations", "providerconfigs"])
    return user


def namespace(plane: ControlPlane, name: str) -> str:
    status, made = plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert status in (201, 409), made
    return name
