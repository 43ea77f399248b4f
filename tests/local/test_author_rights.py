"""Admission asks in the author's name: a user cannot have Butler do what the user may not do.

On both control planes, with the real kubectl, as people who have exactly the rights that a test gives them.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest

from butler.kube import config
from butler.kube.client import Client
from local.terminal import network_pool
from local.test_admission import Terminal, serving
from local.test_providerconfig_admission import cluster, ipam, provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from local.terminal import Kubectl

Json = dict[str, Any]
GROUP = "butler.butlerlabs.dev"
TEAM = f"{GROUP}/team"
FORCE = f"{GROUP}/force-delete"
WRITE = ["get", "list", "create", "update", "patch", "delete"]


class Office(Terminal):
    """A namespace in which Butler serves admission, and people with few rights."""

    home = ""

    async def person(self, *rules: tuple[str, str, list[str]], namespace: str = "") -> str:
        """A user with these rights in the namespace, and no others: (group, resource, verbs); their name."""
        name = f"person-{secrets.token_hex(4)}"
        where = ("--namespace", namespace) if namespace else ()
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name},
            "rules": [{"apiGroups": [group], "resources": [plural], "verbs": verbs} for group, plural, verbs in rules],
        }
        await self.run(*where, "create", "-f", "-", stdin=role)
        await self.run(*where, "create", "rolebinding", name, f"--role={name}", f"--user={name}")
        return name


@pytest.fixture
async def office(kubectl: Kubectl) -> AsyncIterator[Office]:
    """The namespace is Butler's home as well."""
    found = Office(kubectl)
    found.home = kubectl.namespace
    async with (
        Client(config.load(kubectl.control_plane.kubeconfig)) as client,
        serving(client, found, home_namespace=kubectl.namespace),
    ):
        yield found
        await found.run("delete", "tenantclusters", "--all")


@pytest.fixture
async def team_office(kubectl: Kubectl) -> AsyncIterator[Office]:
    """The namespace of a team; Butler's home is another."""
    found = Office(kubectl)
    found.home = kubectl.control_plane.fresh_namespace("home")
    kubectl("label", "namespace", kubectl.namespace, f"{TEAM}=search")
    async with (
        Client(config.load(kubectl.control_plane.kubeconfig)) as client,
        serving(client, found, home_namespace=found.home),
    ):
        yield found
        await found.run("delete", "tenantclusters", "--all")  # else one without a provider would use another test's


# ProviderConfigs.


async def test_who_may_not_read_a_secret_cannot_have_it_sent_anywhere(office: Office) -> None:
    await office.run("create", "secret", "generic", "login", "--from-literal=password=correct-horse")
    operator = await office.person((GROUP, "providerconfigs", WRITE), (GROUP, "networkpools", ["get", "list"]))
    hidden = "spec.credentialsRef: you may not read Secret"
    for name in ("login", "no-such-secret"):
        wanted = provider(credentialsRef={"name": name})
        said = await office.refused("create", "--as", operator, "-f", "-", stdin=wanted)
        assert f"{hidden} {office.namespace}/{name}, and what is in it goes to the server" in said
    elsewhere = provider(credentialsRef={"name": "dba", "namespace": "kube-system"})
    said = await office.refused("create", "--as", operator, "-f", "-", stdin=elsewhere)
    assert f"{hidden} kube-system/dba" in said
    # An administrator makes it; the operator may change what has nothing to do with the credentials, and no more.
    await office.create(network_pool("rack", "10.40.0.0/24", reserved=[{"cidr": "10.40.0.0/28"}]), provider())
    patch = ("patch", "providerconfig", "prism", "--as", operator, "--type", "merge", "-p")
    await office.run(*patch, '{"spec": {"network": {"timeServers": ["time.example.com"]}}}')
    await office.run(*patch, '{"spec": {"limits": {"maxClustersPerTeam": 3}}}')
    for change in (
        '{"spec": {"nutanix": {"endpoint": "https://mine.example.com"}}}',
        '{"spec": {"nutanix": {"insecure": true}}}',
        '{"spec": {"nutanix": {"port": 9999}}}',
        '{"spec": {"credentialsRef": {"name": "other"}}}',
        '{"spec": {"credentialsRef": {"namespace": "kube-system"}}}',
    ):
        assert hidden in await office.refused(*patch, change)
        assert hidden in await office.refused(*patch, change, "--dry-run=server")
    applied = provider(nutanix={**provider()["spec"]["nutanix"], "endpoint": "https://mine.example.com"})
    as_operator = ("apply", "--as", operator, "--server-side", "--force-conflicts", "-f", "-")
    assert hidden in await office.refused(*as_operator, stdin=applied)
    assert hidden in await office.refused("replace", "--as", operator, "-f", "-", stdin=applied)


async def test_a_provider_that_is_being_deleted_sends_no_secret_elsewhere_either(office: Office) -> None:
    """Clusters may be on it still, and their machines are taken away with its credentials."""
    operator = await office.person((GROUP, "providerconfigs", WRITE), (GROUP, "networkpools", ["get", "list"]))
    going = provider()
    going["metadata"]["finalizers"] = ["example.com/kept"]
    await office.create(network_pool("rack", "10.40.0.0/24"), going)
    await office.run("delete", "providerconfig", "prism", "--wait=false", "--as", operator)
    patch = ("patch", "providerconfig", "prism", "--as", operator, "--type", "merge", "-p")
    for change in (
        '{"spec": {"nutanix": {"endpoint": "https://mine.example.com"}}}',
        '{"spec": {"credentialsRef": {"name": "other"}}}',
    ):
        said = await office.refused(*patch, change)
        assert "spec.credentialsRef: you may not read Secret" in said
    await office.run(*patch, '{"metadata": {"finalizers": null}}')


async def test_who_may_read_the_secret_may_name_it(office: Office) -> None:
    keeper = await office.person((GROUP, "providerconfigs", WRITE), ("", "secrets", ["get"]))
    await office.run("create", "--as", keeper, "-f", "-", stdin=provider())
    patch = '{"spec": {"nutanix": {"endpoint": "https://new.example.com"}}}'
    await office.run("patch", "providerconfig", "prism", "--as", keeper, "--type", "merge", "-p", patch)


async def test_who_may_not_read_a_pool_cannot_hand_out_its_addresses(team_office: Office) -> None:
    await team_office.run(
        "--namespace", team_office.home, "create", "-f", "-", stdin=network_pool("rack", "10.40.0.0/24")
    )
    admin = await team_office.person((GROUP, "providerconfigs", WRITE), ("", "secrets", ["get"]))
    said = [
        await team_office.refused("create", "--as", admin, "-f", "-", stdin=provider(network=ipam(name)))
        for name in ("rack", "no-such-pool")
    ]
    assert f"spec.network.poolRefs: you may not read NetworkPool {team_office.home}/rack" in said[0]
    assert said[1] == said[0].replace("/rack", "/no-such-pool")
    assert "10.40" not in said[0]


# TenantClusters.


def plain(name: str = "web", **spec: Any) -> Json:
    found = cluster(name, "", "")
    del found["spec"]["providerConfigRef"]
    return {**found, "spec": {**found["spec"], **spec}}


async def test_the_team_is_that_of_the_namespace(team_office: Office) -> None:
    operator = await team_office.person((GROUP, "tenantclusters", WRITE))
    liar = plain(teamRef={"name": "payments"})
    said = await team_office.refused("create", "--as", operator, "-f", "-", stdin=liar)
    assert f"namespace {team_office.namespace} belongs to team search, and so does every cluster in it" in said
    await team_office.run("create", "--as", operator, "-f", "-", stdin=plain())
    patch = ("patch", "tenantcluster", "web", "--as", operator, "--type", "merge", "-p")
    assert "belongs to team search" in await team_office.refused(*patch, '{"spec": {"teamRef": {"name": "payments"}}}')
    await team_office.run(*patch, '{"spec": {"teamRef": {"name": "search"}}}')
    label = ("label", "namespace", team_office.namespace, f"{TEAM}=payments", "--overwrite", "--as", operator)
    assert "forbidden" in await team_office.refused(*label)


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "a b", "-a", "x" * 64, ""])
async def test_a_team_has_a_name_that_fits_into_a_label(team_office: Office, name: str) -> None:
    said = await team_office.refused("create", "-f", "-", stdin=plain(teamRef={"name": name}))
    assert "spec.teamRef.name" in said


async def test_of_other_namespaces_providers_nothing_is_told(team_office: Office) -> None:
    hidden = team_office._kubectl.control_plane.fresh_namespace("hidden")
    await team_office.run("--namespace", hidden, "create", "-f", "-", stdin=provider("works"))
    operator = await team_office.person((GROUP, "tenantclusters", WRITE))
    said = {
        (await team_office.refused("create", "--as", operator, "-f", "-", stdin=cluster("web", name, hidden))).replace(
            name, "x"
        )
        for name in ("works", "absent")
    }
    assert len(said) == 1, said
    (sentence,) = said
    assert f"ProviderConfig {hidden}/x is not found or not usable from namespace {team_office.namespace}" in sentence
    at_home = provider("of-payments", scope={"type": "team", "teamRef": {"name": "payments"}})
    await team_office.run("--namespace", team_office.home, "create", "-f", "-", stdin=at_home)
    warnings = set()
    for name in ("of-payments", "no-such-one"):
        wanted = cluster("web", name, team_office.home)
        _, warned = await team_office.run("create", "--as", operator, "--dry-run=server", "-f", "-", stdin=wanted)
        warnings.add(warned.replace(name, "x"))
    assert len(warnings) == 1, warnings
    (warning,) = warnings
    assert f"ProviderConfig {team_office.home}/x is not found or not usable" in warning


async def test_a_provider_of_the_namespace_is_for_those_who_may_read_it(team_office: Office) -> None:
    await team_office.create(provider())
    operator = await team_office.person((GROUP, "tenantclusters", WRITE))
    wanted = cluster("web", "prism", team_office.namespace)
    said = await team_office.refused("create", "--as", operator, "-f", "-", stdin=wanted)
    assert f"you may not read ProviderConfig {team_office.namespace}/prism" in said
    reader = await team_office.person((GROUP, "tenantclusters", WRITE), (GROUP, "providerconfigs", ["get"]))
    await team_office.run("create", "--as", reader, "-f", "-", stdin=wanted)


async def test_a_right_in_a_namespace_does_not_choose_its_team(team_office: Office) -> None:
    """cluster-admin, bound in one namespace, may change the Namespace itself, also by its status."""
    owner = f"owner-{secrets.token_hex(4)}"
    await team_office.run("create", "rolebinding", owner, "--clusterrole=cluster-admin", f"--user={owner}")
    label = ("label", "namespace", team_office.namespace, "--as", owner, "--overwrite")
    await team_office.run(*label, "colour=green")
    patch = ("patch", "namespace", team_office.namespace, "--as", owner, "--type", "merge", "-p")
    for attempt in (
        (*label, f"{TEAM}=payments"),
        (*label, f"{TEAM}-"),
        (*patch, '{"metadata": {"labels": null, "annotations": {"a": "b"}}}'),
        (*patch, f'{{"metadata": {{"labels": {{"{TEAM}": "payments"}}}}}}', "--subresource=status"),
    ):
        said = await team_office.refused(*attempt)
        assert f"label {TEAM} says whose namespace {team_office.namespace} is" in said, attempt
    await team_office.run("label", "namespace", team_office.namespace, "--overwrite", f"{TEAM}=payments")


async def test_force_needs_a_right_of_its_own(team_office: Office) -> None:
    operator = await team_office.person((GROUP, "tenantclusters", WRITE))
    sure = await team_office.person((GROUP, "tenantclusters", [*WRITE, "forcedelete"]))
    await team_office.create(plain())
    annotate = ("annotate", "tenantcluster", "web", "--overwrite")
    refusal = f"annotation {FORCE} releases addresses of machines that may still run"
    for value in ("web", "true", ""):
        assert refusal in await team_office.refused(*annotate, f"{FORCE}={value}", "--as", operator)
    born = plain("other")
    born["metadata"]["annotations"] = {FORCE: "other"}
    assert refusal in await team_office.refused("create", "--as", operator, "-f", "-", stdin=born)
    await team_office.run(*annotate, "example.com/note=seen", "--as", operator)
    await team_office.run(*annotate, f"{FORCE}=true", "--as", sure)
    assert refusal in await team_office.refused(*annotate, f"{FORCE}=web", "--as", operator)
    await team_office.run("scale", "tenantcluster", "web", "--replicas=2")
    await team_office.run(*annotate, f"{FORCE}=web", "--as", sure)
    await team_office.run(*annotate, f"{FORCE}-", "--as", operator)
