"""The API server: who is asking, may they, and who answers.

    Edge (wire/asgi.py) -> ApiServer.answer -> authenticate -> impersonate -> authorize -> documents or verbs

The server hosts one root cluster and any number of logical clusters beside it, each with its own users, roles, objects
and definitions. A credential of one is not valid in another. Which there are is decided in the root (`clusters.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from kubeserver import clusters
from kubeserver.access.authentication import User, bearer_token
from kubeserver.access.authorization import Attributes, forbidden
from kubeserver.access.impersonation import impersonated, wanted_user
from kubeserver.places import Places
from kubeserver.verbs.dispatch import unknown_resource
from kubeserver.views.documents import Documents, not_a_page
from kubeserver.wire.messages import Request, Response, Stream, warning_headers
from kubeserver.wire.options import flag
from kubeserver.wire.paths import ROOT, RequestInfo, read_path, split_cluster
from kubeserver.wire.status import unauthorized

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.hosted_cluster import HostedCluster
    from kubeserver.resources import Resource

Json = dict[str, Any]
Subject = tuple[tuple[str, str], ...]

ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


class UnreadBody(Protocol):
    """A body that has not been read yet."""

    @property
    def large(self) -> bool:
        """Whether it is announced to be, or may become, larger than what is worked on at once."""
        ...

    async def read(self) -> bytes: ...

    gone: Callable[[], bool]  # whether the client has left


class ApiServer:
    def __init__(self, keeper: clusters.Clusters | None = None) -> None:
        self.clusters: dict[str, HostedCluster] = {}
        self._keeper = keeper
        self._places = Places()

    async def answer(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        headers: list[tuple[str, str]],
        body: UnreadBody,
        subject: Subject,
    ) -> Response | Stream:
        """The body is read last: who may not ask sends it in vain."""
        about_clusters = self._keeper is not None and clusters.is_about_clusters(method, path)
        name, path = (ROOT, path) if about_clusters else split_cluster(path)
        hosted = self.clusters.get(name)
        if hosted is None:
            return not_a_page()
        info = read_path(method, path, watch=flag(query, "watch"))
        by_name = dict(headers)
        user = _authenticate(hosted, by_name.get("authorization", ""), subject)
        if other := wanted_user(headers):
            user = impersonated(_attributes(user, info), other, hosted.authorizer.authorize)
        wanted = _attributes(user, info)
        decision = hosted.authorizer.authorize(wanted)
        if not decision.allowed:
            raise forbidden(wanted, decision.reason)
        request = Request(info, user, query, by_name, gone=body.gone)
        if self._keeper is not None and about_clusters:
            return await clusters.answer(self._keeper, method, path)
        await hosted.cluster.turns.take(request.caller(name))
        if not body.large:
            request.body = await body.read()
            return await self._answer(hosted, method, path, request)
        async with self._places.one(request.caller(name)):
            request.body = await body.read()
            return await self._answer(hosted, method, path, request)

    async def _answer(self, hosted: HostedCluster, method: str, path: str, request: Request) -> Response | Stream:
        """Answer a request that is allowed."""
        info = request.info
        if not info.is_resource:
            if found := Documents(hosted).answer(method, request):
                return found
            if hosted.cluster.registry.knows_group(path):
                raise unknown_resource()
            return not_a_page()
        resource = hosted.cluster.registry.find(info.group, info.version, info.resource)
        if resource is None:
            if hosted.cluster.registry.serves_builtin(info.group, info.version):
                raise unknown_resource()
            return not_a_page()
        if not is_routed(resource, info):
            if resource.custom:
                return not_a_page()
            raise unknown_resource()
        answer = await hosted.verbs.answer(resource, request)
        if resource.deprecated:
            answer.headers += warning_headers([resource.deprecation_warning])
        return answer


def is_routed(resource: Resource, info: RequestInfo) -> bool:
    """Whether a path leads to the resource at all.

    RBAC is asked in the namespace that the path names. So a path must name one exactly where the object is inside it:
    else rights in one namespace would govern objects of the whole cluster (CVE-2019-11247).
    """
    if info.beyond:
        return False
    if resource.namespaced:
        across = info.verb in ("list", "watch") if resource.custom else not info.name
        return bool(info.namespace) or across
    is_the_namespace = (resource.group, resource.plural) == ("", "namespaces") and not info.inside_namespace
    return not info.namespace or is_the_namespace


def _authenticate(hosted: HostedCluster, authorization: str, subject: Subject) -> User:
    """A request without credentials is anonymous; a request with invalid credentials is refused."""
    certificate = _named_by(subject, hosted.unit)
    user = hosted.authenticator.user(authorization=authorization, certificate=certificate)
    if user is not None:
        return user
    if bearer_token(authorization):
        raise unauthorized()
    return ANONYMOUS


def _named_by(subject: Subject, unit: str) -> tuple[str, tuple[str, ...]] | None:
    """The (name, groups) of a certificate, if it was issued for this logical cluster."""
    units = [value for field, value in subject if field == "organizationalUnitName"]
    issued_for = units[0] if units else ""
    if not subject or issued_for != unit:
        return None
    names = [value for field, value in subject if field == "commonName"]
    groups = tuple(value for field, value in subject if field == "organizationName")
    return (names[0], groups) if names else None


def _attributes(user: User, info: RequestInfo) -> Attributes:
    return Attributes(
        user=user,
        verb=info.verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        path=info.path if not info.is_resource else "",
    )
