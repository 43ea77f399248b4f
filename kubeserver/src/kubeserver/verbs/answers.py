"""Resources that answer instead of being stored: reviews of access, tokens, the logs and binding of pods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.reviews import review
from kubeserver.cluster import timestamp
from kubeserver.verbs.bodies import part
from kubeserver.wire.messages import Request, Response, respond
from kubeserver.wire.status import ApiError, FieldError, bad_request, invalid, not_found

if TYPE_CHECKING:
    from kubeserver.access.authentication import Authenticator
    from kubeserver.access.authorization import Authorizer
    from kubeserver.access.tokens import TokenIssuer
    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource

Json = dict[str, Any]

_SHORTEST: Final = 600


@dataclass(slots=True, frozen=True)
class Access:
    """Who is who in a logical cluster, and who may do what."""

    authenticator: Authenticator
    authorizer: Authorizer
    tokens: TokenIssuer


def answer_review(access: Access, resource: Resource, request: Request, body: Json, now: str) -> Response:
    """POST of a SelfSubjectAccessReview and its relatives."""
    answer = review(
        resource.kind,
        request.user,
        body,
        access.authorizer,
        namespace=request.info.namespace,
        now=now,
        by_token=access.authenticator.by_token,
    )
    return respond(201, answer)


def issue_token(access: Access, cluster: LogicalCluster, resource: Resource, request: Request, body: Json) -> Response:
    """POST serviceaccounts/NAME/token."""
    info = request.info
    entry = cluster.store.get(cluster.key(resource, info.namespace, info.name))
    if entry is None:
        raise not_found("", "serviceaccounts", info.name)
    account = cluster.load(resource, entry)
    seconds = part(body, "spec.expirationSeconds", int, "TokenRequest")
    audiences = part(body, "spec.audiences", list, "TokenRequest")
    if seconds is not None and seconds < _SHORTEST:
        detail = "may not specify a duration less than 10 minutes"
        error = FieldError("FieldValueInvalid", "spec.expirationSeconds", detail, seconds)
        raise invalid("authentication.k8s.io", "TokenRequest", "", [error])
    if part(body, "spec.boundObjectRef", dict, "TokenRequest"):
        detail = "tokens bound to an object are not issued by this control plane: leave it out"
        error = FieldError("FieldValueForbidden", "spec.boundObjectRef", detail)
        raise invalid("authentication.k8s.io", "TokenRequest", "", [error])
    token, lifetime, expires = access.tokens.issue(account, seconds, audiences)
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": info.name, "namespace": info.namespace, "creationTimestamp": cluster.now()},
        "spec": {
            "audiences": audiences or [access.tokens.issuer],
            "expirationSeconds": lifetime,
            "boundObjectRef": None,
        },
        "status": {"token": token, "expirationTimestamp": timestamp(datetime.fromtimestamp(expires, UTC))},
    }
    return respond(201, answer)


def bound(pod: Json, binding: Json) -> Json:
    """A pod after it was given to a node."""
    pod["spec"]["nodeName"] = part(binding, "target.name", str, "Binding") or ""
    return pod


def pod_log(cluster: LogicalCluster, resource: Resource, request: Request) -> Response:
    """GET pods/NAME/log: nothing for a pod without a node, as in Kubernetes; no container ever runs here."""
    info = request.info
    entry = cluster.store.get(cluster.key(resource, info.namespace, info.name))
    if entry is None:
        raise not_found("", "pods", info.name)
    spec = cluster.load(resource, entry)["spec"]
    main = [container["name"] for container in spec["containers"]]
    initial = [init_container["name"] for init_container in spec.get("initContainers") or ()]
    wanted = request.query.get("container", "")
    if not wanted and len(main) > 1:
        choice = f"choose one of: [{' '.join(main)}]"
        choice += f" or one of the init containers: [{' '.join(initial)}]" if initial else ""
        raise bad_request(f"a container name must be specified for pod {info.name}, {choice}")
    if wanted and wanted not in (*main, *initial):
        raise bad_request(f"container {wanted} is not valid for pod {info.name}")
    if spec.get("nodeName"):
        raise ApiError(500, "", f"pod {info.name} has no logs: this control plane runs no containers")
    return Response(200, b"", "text/plain")
