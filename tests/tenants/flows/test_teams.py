"""Whose a cluster is: its namespace decides, whatever its author writes. No webhook is asked here: Butler's
controllers keep these rules by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenants.estate import API, HOME
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from tenants.estate import Estate, Json, Site, Tenant

TEAM = "butler.butlerlabs.dev/team"


def _belongs_to(site: Site, team: str | None) -> None:
    """What a platform administrator does; members of a team may not."""
    site.estate.patch(f"/api/v1/namespaces/{site.namespace}", {"metadata": {"labels": {TEAM: team}}})


def _another(estate: Estate, of: Site, team: str | None) -> Site:
    """Another namespace, for clusters on the same provider."""
    site = estate.bare_site()
    site.provider = of.provider
    if team:
        _belongs_to(site, team)
    return site


def _holds_nothing(tenant: Tenant) -> None:
    assert tenant.phase == "Failed"
    assert tenant.allocations() == []
    assert tenant.witness.get("namespaces", "", tenant.home) is None
    assert "tenantNamespace" not in tenant.status


def _provider_in(site: Site, name: str, secret: str) -> Json:
    """A ProviderConfig in the namespace of the site's clusters."""
    found = site.describe_provider()
    found["metadata"] = {"name": name, "namespace": site.namespace}
    found["spec"]["credentialsRef"] = {"name": secret}
    return found


@alongside
def test_a_team_that_the_author_claims_opens_no_provider_and_charges_no_team(estate: Estate) -> None:
    scope = {"scope": {"type": "team", "teamRef": {"name": "payments"}}, "limits": {"maxClustersPerTeam": 1}}
    site = estate.site(spec=scope)
    _belongs_to(site, "search")
    liar = site.cluster("liar", teamRef={"name": "payments"})
    honest = site.cluster("honest")
    said = {tenant.says("ProviderAccessGranted", "False", "ProviderAccessDenied") for tenant in (liar, honest)}
    (sentence,) = said
    assert sentence == (
        f"ProviderConfig {HOME}/{site.provider} is not found or not usable from namespace {site.namespace},"
        f" of team search: name one of namespace {HOME} that is for all teams or for the team of the namespace, or one"
        f" of namespace {site.namespace}"
    )
    _holds_nothing(liar)
    _holds_nothing(honest)
    rightful = _another(estate, site, "payments").cluster("own")
    rightful.ready()
    assert {allocation["metadata"]["labels"][TEAM] for allocation in rightful.allocations()} == {"payments"}
    assert rightful.status["team"] == "payments"


@alongside
def test_limits_of_a_team_count_its_namespaces_and_not_what_clusters_say(estate: Estate) -> None:
    site = estate.site(spec={"limits": {"maxClustersPerTeam": 1}})
    other = _another(estate, site, None)
    _belongs_to(site, f"a-{site.pool}")
    _belongs_to(other, f"a-{site.pool}")
    first = site.cluster("first")
    first.ready()
    second = other.cluster("second")
    said = second.says("QuotaSatisfied", "False", "QuotaExceeded")
    assert said.startswith(f"team a-{site.pool} has 1 clusters on ProviderConfig {HOME}/{site.provider}")
    stranger = _another(estate, site, None)
    claimed = stranger.cluster("claimed", teamRef={"name": f"a-{site.pool}"})
    claimed.ready()  # it is charged to its own namespace
    assert TEAM not in claimed.allocations()[0]["metadata"]["labels"]
    dodge = stranger.cluster("dodge", teamRef={"name": "made-up"})
    said = dodge.says("QuotaSatisfied", "False", "QuotaExceeded")
    assert said.startswith(f"namespace {stranger.namespace} has 1 clusters")


@alongside
def test_a_team_that_is_not_the_namespaces_is_refused_though_the_provider_is_for_all(estate: Estate) -> None:
    site = estate.site()
    _belongs_to(site, "search")
    liar = site.cluster("liar", teamRef={"name": "payments"})
    said = liar.says("ProviderAccessGranted", "False", "ProviderAccessDenied")
    assert said == (
        f"namespace {site.namespace} belongs to team search, and so does every cluster in it: leave spec.teamRef out"
    )
    _holds_nothing(liar)


@alongside
def test_a_label_on_the_namespace_is_noticed_at_once_and_so_is_its_end(estate: Estate) -> None:
    site = estate.site(spec={"scope": {"type": "team", "teamRef": {"name": "payments"}}})
    web = site.cluster(teamRef={"name": "payments"})
    said = web.says("ProviderAccessGranted", "False", "ProviderAccessDenied")
    assert "which belongs to no team until a platform administrator labels it with butler.butlerlabs.dev/team" in said
    _belongs_to(site, "payments")
    web.ready()
    _belongs_to(site, None)
    web.says("ProviderAccessGranted", "False", "ProviderAccessDenied")
    assert len(web.machines()) == 1
    assert {allocation["status"]["phase"] for allocation in web.allocations()} == {"Allocated"}


@alongside
def test_a_namespace_that_butler_made_lends_its_team_to_no_cluster(estate: Estate) -> None:
    site = estate.site(spec={"scope": {"type": "team", "teamRef": {"name": "payments"}}})
    _belongs_to(site, "payments")
    web = site.cluster()
    web.ready()
    labels = (web.witness.get("namespaces", "", web.home) or {})["metadata"]["labels"]
    assert labels[TEAM] == "payments"
    inside = site.describe_cluster("inside")
    inside["metadata"]["namespace"] = web.home
    path = f"/apis/{API}/namespaces/{web.home}/tenantclusters"
    estate.send("POST", path, inside)

    def said() -> list[str]:
        found = web.witness.get("tenantclusters", web.home, "inside") or {}
        return [
            condition["reason"]
            for condition in (found.get("status") or {}).get("conditions", ())
            if condition["status"] == "False"
        ]

    estate.until(lambda: "ProviderAccessDenied" in said(), "a cluster in a cluster's own namespace has no team")
    estate.delete(f"{path}/inside")
    estate.until(lambda: not web.witness.get("tenantclusters", web.home, "inside"), "it is gone")


@alongside
def test_of_other_namespaces_providers_nothing_is_used_and_nothing_told(estate: Estate) -> None:
    """Whether it exists, is broken or belongs to another team: one sentence."""
    hidden = estate.site()
    hidden.estate.apply(
        _in_namespace(hidden.login(), hidden.namespace),
        _provider_in(hidden, "works", hidden.secret),
        _provider_in(hidden, "broken", "acme-merger-credentials"),
    )
    estate.until(lambda: _ready(hidden, "works") is True and _ready(hidden, "broken") is False, "both were looked at")
    intruder = estate.bare_site()
    said = set()
    for name in ("works", "broken", "absent"):
        reference = {"name": name, "namespace": hidden.namespace}
        thief = intruder.cluster(f"on-{name}", providerConfigRef=reference)
        said.add(thief.says("ProviderAccessGranted", "False", "ProviderAccessDenied").replace(f"/{name} ", "/x "))
        _holds_nothing(thief)
    (sentence,) = said
    assert sentence.startswith(f"ProviderConfig {hidden.namespace}/x is not found or not usable from namespace")
    assert "acme-merger" not in sentence
    own = hidden.cluster("own", providerConfigRef={"name": "works", "namespace": hidden.namespace})
    own.ready()


def _in_namespace(obj: Json, namespace: str) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _ready(site: Site, name: str) -> object:
    found = site.estate.find(f"{site.path('providerconfigs')}/{name}") or {}
    return (found.get("status") or {}).get("ready")
