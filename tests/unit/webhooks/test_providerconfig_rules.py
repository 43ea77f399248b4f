"""What may be done to a ProviderConfig: refusals with the field to blame, warnings where time may put it right."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from butler.api.codec import from_json, to_json
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.kube.client import Listed
from butler.kube.errors import Status, Unreachable, error_from_status
from butler.rules.provider.admission import Surroundings, gives_up, judge, rights, why_not_deleted
from butler.webhooks import review
from butler.webhooks.admission import AdmissionWebhook
from unit.controllers.fake_server import FakeCache
from unit.providers.given import config
from unit.webhooks.given import allocation, pool, reserved

RACK = pool("rack", "10.40.0.0/24", **reserved("10.40.0.0/27"))
SPARE = pool("spare", "10.50.0.0/24", **reserved("10.50.0.0/27"))
GATEWAY = "10.40.0.1"


def provider(*pools: str | dict[str, Any], scope: str = "", **network: Any) -> ProviderConfig:
    """A Nutanix in ipam mode; with a gateway unless it is taken out with None."""
    made = to_json(config("nutanix", name="lab"))
    refs = [{"name": text} if isinstance(text, str) else text for text in pools]
    settings = {"mode": "ipam", "poolRefs": refs, "gateway": GATEWAY, **network}
    made["spec"]["network"] = {key: value for key, value in settings.items() if value is not None}
    if scope:
        made["spec"]["scope"] = {"type": "team", "teamRef": {"name": scope}}
    made["metadata"]["namespace"] = "home"
    return from_json(ProviderConfig, made)


def cluster(name: str = "web", *, on: str | None = "lab", team: str = "") -> TenantCluster:
    spec: dict[str, Any] = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}}
    if on:
        spec["providerConfigRef"] = {"name": on}
    status = {"team": team} if team else {}
    metadata = {"name": name, "namespace": "t", "uid": name}
    return from_json(TenantCluster, {"metadata": metadata, "spec": spec, "status": status})


AROUND = Surroundings("home", {"rack": RACK, "spare": SPARE})


def test_a_sound_provider_passes_without_a_word() -> None:
    assert judge(None, provider("rack", dnsServers=["10.40.0.2"]), AROUND) == ((), ())


def test_a_pool_that_is_not_there_yet_is_a_warning() -> None:
    verdict = judge(None, provider("rack", "later"), AROUND)
    assert verdict.problems == ()
    assert verdict.warnings == (
        (
            "spec.network.poolRefs[1]: there is no NetworkPool later in namespace home yet:"
            " nothing comes from it until it is created"
        ),
    )


@pytest.mark.parametrize(
    ("made", "field", "said"),
    [
        (
            provider("rack", "spare", gateway="10.60.0.1"),
            "spec.network.gateway",
            "10.60.0.1 lies in none of the pools for nodes (rack 10.40.0.0/24, spare 10.50.0.0/24)",
        ),
        (provider("rack", gateway="fd00::1"), "spec.network.gateway", "lies in none of the pools"),
        (provider("rack", gateway="10.40.0.255"), "spec.network.gateway", "first or last address of its network"),
        (provider("rack", gateway="127.0.0.1"), "spec.network.gateway", "no address that a gateway can have"),
        (provider("rack", gateway="224.0.0.1"), "spec.network.gateway", "no address that a gateway can have"),
        (provider("rack", gateway="10.40.0.01"), "spec.network.gateway", "is not an IP address"),
        (
            provider({"name": "rack", "gateway": "10.60.0.1"}),
            "spec.network.poolRefs[0].gateway",
            "lies in none of the pools for nodes (rack",
        ),
        (provider("rack", dnsServers=["10.0.0.1", "::1"]), "spec.network.dnsServers[1]", "no address of a server"),
        (provider("rack", dnsServers=["0.0.0.0"]), "spec.network.dnsServers[0]", "no address of a server"),
        (provider("rack", dnsServers=["dns"]), "spec.network.dnsServers[0]", "is not an IP address"),
    ],
)
def test_a_network_that_cannot_work_is_refused(made: ProviderConfig, field: str, said: str) -> None:
    (problem,) = judge(None, made, AROUND).problems
    assert problem.field == field
    assert said in problem.message


def test_a_gateway_is_not_judged_while_a_pool_is_missing() -> None:
    assert judge(None, provider("rack", "later", gateway="10.60.0.1"), AROUND).problems == ()


def test_pools_for_load_balancers_need_no_gateway() -> None:
    only = {"name": "rack", "types": ["loadbalancer"]}
    assert judge(None, provider(only, gateway="10.60.0.1"), AROUND) == ((), ())
    assert judge(None, provider(only, gateway=None), AROUND) == ((), ())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (provider("rack", gateway=None), "spec.network.gateway is not set, but machines"),
        (provider("rack", gateway="10.40.0.77"), "10.40.0.77 is among the addresses that NetworkPool rack hands out"),
        (provider("rack", dnsServers=["10.40.0.99"]), "spec.network.dnsServers[0]: 10.40.0.99 is among the addresses"),
        (
            provider({"name": "rack", "types": ["nodes"]}, loadBalancer={}),
            "spec.network.loadBalancer is not looked at",
        ),
        (
            provider("rack", loadBalancer={}, quotaPerTenant={"maxLoadBalancerIPs": 4}),
            "tenants get 4 addresses and not the 8 that spec.network.loadBalancer gives them",
        ),
    ],
)
def test_what_is_likely_a_slip_is_a_warning(made: ProviderConfig, said: str) -> None:
    verdict = judge(None, made, AROUND)
    assert verdict.problems == ()
    assert any(said in warning for warning in verdict.warnings), verdict.warnings


def test_settings_that_no_console_could_use_are_refused() -> None:
    (problem,) = judge(None, config("nutanix", clusterUUID="prod"), Surroundings("butler-system", {})).problems
    assert problem.field == "spec.nutanix.clusterUUID"


def test_a_secret_of_another_namespace_is_refused_outside_home() -> None:
    made = to_json(config("aws"))
    made["spec"]["credentialsRef"]["namespace"] = "butler-system"
    made["metadata"]["namespace"] = "team-a"
    (problem,) = judge(None, from_json(ProviderConfig, made), Surroundings("butler-system", {})).problems
    assert problem.field == "spec.credentialsRef.namespace"


def test_what_was_wrong_before_stays_editable() -> None:
    old, new = provider("rack", gateway="10.60.0.1"), provider("rack", gateway="10.60.0.1", dnsServers=["10.40.0.2"])
    verdict = judge(old, new, AROUND)
    assert verdict.problems == ()
    assert any("lies in none of the pools" in warning for warning in verdict.warnings)
    assert judge(old, provider("rack", gateway="10.70.0.1"), AROUND).problems


def test_giving_up_a_pool_that_clusters_hold_is_a_warning() -> None:
    held = from_json(
        type(allocation()),
        to_json(allocation("web-nodes", "spare"))
        | {"status": {"phase": "Allocated", "startAddress": "10.50.0.40", "endAddress": "10.50.0.44"}},
    )
    old, new = provider("rack", "spare"), provider("rack")
    assert gives_up(old, new)
    around = AROUND._replace(clusters=[cluster("t")], allocations=[held])
    assert judge(old, new, around).warnings == (
        (
            "spec.network.poolRefs: clusters on this provider hold addresses of NetworkPool spare (web-nodes):"
            " they keep them, and get no more from it"
        ),
    )
    assert judge(old, new, AROUND._replace(allocations=[held])).warnings == ()
    assert not gives_up(new, old)


def test_a_narrower_scope_names_the_clusters_of_other_teams() -> None:
    old, new = provider("rack"), provider("rack", scope="payments")
    around = AROUND._replace(clusters=[cluster("a", team="payments"), cluster("b", team="search"), cluster("c")])
    assert gives_up(old, new)
    assert judge(old, new, around).warnings == (
        (
            "spec.scope: TenantCluster t/b, TenantCluster t/c will no longer have access, not being of team payments:"
            " they keep running, and cannot be changed"
        ),
    )


def test_a_provider_in_use_is_not_deleted() -> None:
    assert why_not_deleted(provider("rack"), []) == ""
    said = why_not_deleted(provider("rack"), [cluster(name) for name in "dcba"])
    assert said.startswith(
        "ProviderConfig lab is used by TenantCluster t/a, TenantCluster t/b, TenantCluster t/c and 1 more:"
    )


# Reading what the rules need.


class Server:
    """As much of an API server as admission reads."""

    def __init__(self, *clusters: TenantCluster, providers: tuple[ProviderConfig, ...] = ()) -> None:
        self.clusters = list(clusters)
        self.providers = list(providers)
        self.trouble: Exception | None = None
        self.hidden: set[str] = set()
        self.reviews: list[tuple[str, str, str, str]] = []

    async def list(self, resource: Any, namespace: str = "", timeout: float = 0) -> Listed[Any]:
        if self.trouble is not None:
            raise self.trouble
        return Listed(self.clusters if resource.plural == "tenantclusters" else self.providers, "1")

    async def create(self, resource: Any, body: Any, timeout: float = 0) -> Any:
        """A SubjectAccessReview: the author may read all but what is in `hidden`."""
        assert resource.plural == "subjectaccessreviews"
        assert body["spec"]["user"] == "operator"
        wanted = body["spec"]["resourceAttributes"]
        self.reviews.append((wanted["verb"], wanted["resource"], wanted["namespace"], wanted["name"]))
        return {"status": {"allowed": wanted["name"] not in self.hidden}}

    async def get(self, resource: Any, name: str, namespace: str, timeout: float = 0) -> Any:
        if name == "spare":
            return SPARE
        raise error_from_status(Status(reason="NotFound", code=404), 404)


def asked(operation: str, old: ProviderConfig | None, new: ProviderConfig | None) -> review.Question:
    objects = {key: to_json(each) for key, each in (("oldObject", old), ("object", new)) if each is not None}
    request = {
        "uid": "q",
        "operation": operation,
        "resource": {"group": "butler.butlerlabs.dev", "version": "v1alpha1", "resource": "providerconfigs"},
        "kind": {"group": "butler.butlerlabs.dev", "version": "v1alpha1", "kind": "ProviderConfig"},
        "name": "lab",
        "namespace": "home",
        "userInfo": {"username": "operator", "groups": ["platform"]},
        **objects,
    }
    return review.read(
        json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
    )


def desk(server: Server) -> AdmissionWebhook:
    return AdmissionWebhook(server, FakeCache(RACK), FakeCache(), home="home")  # type: ignore[arg-type]


async def test_a_pool_that_the_cache_does_not_show_is_asked_for() -> None:
    answer = await desk(Server()).decide(asked("CREATE", None, provider("rack", "spare", "later")))
    assert answer.allowed
    assert [warning.split(" ", 1)[0] for warning in answer.warnings] == ["spec.network.poolRefs[2]:"]


async def test_refusals_carry_the_field() -> None:
    answer = await desk(Server()).decide(asked("CREATE", None, provider("rack", gateway="10.60.0.1")))
    assert answer.status is not None
    assert answer.status["code"] == 422
    assert answer.status["details"]["causes"][0]["field"] == "spec.network.gateway"


async def test_deletion_is_refused_for_clusters_that_name_it_or_are_here_by_default() -> None:
    lab = provider("rack")
    for server in (Server(cluster()), Server(cluster(on=None), providers=(lab,))):
        answer = await desk(server).decide(asked("DELETE", lab, None))
        assert answer.status is not None
        assert answer.status["code"] == 403
        assert "is used by TenantCluster t/web" in answer.status["message"]
    assert (await desk(Server(cluster(on="other"))).decide(asked("DELETE", lab, None))).allowed


async def test_what_is_going_or_unchanged_is_let_pass_unread() -> None:
    server = Server()
    server.trouble = Unreachable("gone")
    going = to_json(provider("rack"))
    going["metadata"]["deletionTimestamp"] = "2027-01-15T07:59:59Z"
    lab, leaving = provider("rack"), from_json(ProviderConfig, going)
    assert (await desk(server).decide(asked("DELETE", leaving, None))).allowed
    assert (await desk(server).decide(asked("UPDATE", lab, leaving))).allowed
    assert (await desk(server).decide(asked("UPDATE", lab, lab))).allowed
    undecided = await desk(server).decide(asked("DELETE", lab, None))
    assert undecided.status is not None
    assert undecided.status["code"] == 503


# What its author must be allowed.


def nutanix(secret: dict[str, str] | None = None, **settings: Any) -> ProviderConfig:
    made = to_json(provider("rack"))
    made["spec"]["credentialsRef"] = secret or {"name": "login"}
    made["spec"]["nutanix"] |= settings
    return from_json(ProviderConfig, made)


def test_a_new_provider_needs_the_right_to_read_its_secret_and_its_pools() -> None:
    found = [
        (right.verb, right.resource.plural, right.namespace, right.name) for right in rights(None, nutanix(), "home")
    ]
    assert found == [("get", "secrets", "home", "login"), ("get", "networkpools", "home", "rack")]
    elsewhere = next(rights(None, nutanix({"name": "login", "namespace": "team-hidden"}), "home"))
    assert (elsewhere.namespace, elsewhere.name) == ("team-hidden", "login")
    assert "you may not read Secret team-hidden/login" in elsewhere.why_not


@pytest.mark.parametrize(
    "new",
    [
        nutanix(endpoint="https://mine.example.com"),
        nutanix(port=9441),
        nutanix(insecure=True),
        nutanix({"name": "other"}),
        nutanix({"name": "login", "namespace": "team-hidden"}),
        nutanix({"name": "login", "key": "token"}),
    ],
    ids=str,
)
def test_whatever_changes_where_credentials_go_needs_the_right_again(new: ProviderConfig) -> None:
    assert [right.resource.plural for right in rights(nutanix(), new, "home")] == ["secrets"]


def test_other_changes_need_no_right_to_read_the_secret() -> None:
    old = nutanix()
    more = msgspec.structs.replace(old.spec, network=provider("rack", "spare").spec.network)
    found = list(rights(old, msgspec.structs.replace(old, spec=more), "home"))
    assert [(right.resource.plural, right.name) for right in found] == [("networkpools", "spare")]


async def test_an_author_who_may_not_read_the_secret_is_refused_and_nothing_is_read() -> None:
    server = Server()
    server.hidden = {"login"}
    answer = await desk(server).decide(asked("CREATE", None, nutanix()))
    assert answer.status is not None
    assert (answer.status["code"], answer.status["reason"]) == (403, "Forbidden")
    assert "spec.credentialsRef: you may not read Secret home/login" in answer.status["message"]
    assert server.reviews == [("get", "secrets", "home", "login")]
    server.hidden = set()
    assert (await desk(server).decide(asked("CREATE", None, nutanix()))).allowed
