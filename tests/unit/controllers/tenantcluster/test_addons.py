"""Which TenantAddons a cluster needs, and how far they are."""

from __future__ import annotations

from typing import Any

import pytest

from butler.rules.tenant.addons import belongs_to, observed, progress, tenant_addon, wanted_addons
from unit.controllers.tenantcluster.values import UID, addon, cluster

Json = dict[str, Any]
DEFAULTS = ("cilium", "cert-manager", "longhorn", "metallb", "traefik")


def names(addons: Json | None = None, *, load_balancers: bool = True, mode: str = "Active") -> tuple[str, ...]:
    subject = cluster(addons=addons or {}, managementPolicy={"mode": mode})
    return tuple(wanted_addon.addon for wanted_addon in wanted_addons(subject, load_balancers=load_balancers))


@pytest.mark.parametrize(
    ("addons", "expected"),
    [
        # Without a word about addons: what every cluster needs, the pod network first.
        ({}, DEFAULTS),
        ({"certManager": {"enabled": False, "version": "v1"}}, ("cilium", "longhorn", "metallb", "traefik")),
        (
            {"storage": {"provider": "linstor", "version": "v1"}},
            ("cilium", "cert-manager", "linstor", "metallb", "traefik"),
        ),
        ({"ingress": {"enabled": False}}, ("cilium", "cert-manager", "longhorn", "metallb")),
        ({"ingress": {"provider": "nginx"}}, ("cilium", "cert-manager", "longhorn", "metallb", "nginx")),
        ({"gitops": {}}, (*DEFAULTS, "flux")),
        ({"gitops": {"provider": "argocd"}}, (*DEFAULTS, "argocd")),
    ],
)
def test_which_addons_a_cluster_gets(addons: Json, expected: tuple[str, ...]) -> None:
    assert names(addons) == expected


def test_a_cloud_has_load_balancers_of_its_own_unless_metallb_is_named() -> None:
    assert "metallb" not in names(load_balancers=False)
    assert "metallb" in names({"loadBalancer": {"version": "1"}}, load_balancers=False)


@pytest.mark.parametrize("mode", ["Observe", "GitOps"])
def test_none_where_butler_does_not_manage_them(mode: str) -> None:
    assert names({"gitops": {}}, mode=mode) == ()


def test_versions_values_and_the_repository_are_handed_on() -> None:
    subject = cluster(
        addons={
            "cni": {"version": "1.16", "values": {"a": 1}},
            "ingress": {"version": "34", "values": {"b": 2}},
            "gitops": {"version": "2.4", "repository": {"url": "https://git.example/x", "path": "web"}},
        }
    )
    found = {wanted_addon.addon: wanted_addon for wanted_addon in wanted_addons(subject, load_balancers=True)}
    assert (found["cilium"].version, found["cilium"].values) == ("1.16", {"a": 1})
    assert (found["traefik"].version, found["traefik"].values) == ("34", {"b": 2})
    assert found["flux"].values["repository"]["url"] == "https://git.example/x"
    assert found["metallb"].version is None


def test_a_tenant_addon_is_labelled_and_goes_with_its_cluster() -> None:
    subject = cluster()
    for wish in wanted_addons(subject, load_balancers=True):
        made = tenant_addon(subject, wish)
        assert made.metadata.name == f"web-{wish.addon}"
        assert made.metadata.namespace == "team-a"
        (owner,) = made.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller) == ("TenantCluster", UID, True)
        assert made.metadata.labels["butler.butlerlabs.dev/tenant-uid"] == UID
        assert belongs_to(made, subject)


def test_what_an_earlier_cluster_of_the_name_left_behind_is_not_this_ones() -> None:
    assert not belongs_to(addon("cilium", made_for="another"), cluster())
    assert belongs_to(addon("cilium", ours=False), cluster()), "made by hand, for the cluster of that name"
    assert not belongs_to(addon("cilium"), cluster("api"))
    assert not belongs_to(addon("cilium"), cluster(namespace="team-b"))


def test_how_far_they_are() -> None:
    wanted = wanted_addons(cluster(), load_balancers=True)
    present = [
        addon("cilium"),
        addon("cert-manager", "Installing"),
        addon("longhorn", "Failed", message="no disk"),
        addon("metallb", "Installed", generation=2, seen=1),
    ]
    found = progress(wanted, present)
    assert found.installed == {"cilium"}
    assert found.waiting == ("cert-manager", "metallb", "traefik"), "an old word about a new wish does not count"
    assert found.failed == ("longhorn: no disk",)
    assert not found.cni_blocks


@pytest.mark.parametrize("phase", ["Pending", "Installing", "Failed", "Degraded", "Deleting", "Upgrading"])
def test_nothing_goes_without_the_pod_network(phase: str) -> None:
    wanted = wanted_addons(cluster(), load_balancers=True)
    assert progress(wanted, [addon("cilium", phase)]).cni_blocks
    assert progress(wanted, []).cni_blocks


def test_an_addon_that_is_being_deleted_is_waited_for_though_it_says_installed() -> None:
    wanted = wanted_addons(cluster(), load_balancers=True)
    assert "cilium" in progress(wanted, [addon("cilium", deleting=True)]).waiting


def test_failures_without_a_message_name_the_phase() -> None:
    wanted = wanted_addons(cluster(), load_balancers=True)
    assert progress(wanted, [addon("cilium", "Degraded")]).failed == ("cilium: Degraded",)


def test_a_foreign_tenant_addon_for_the_same_addon_does_not_count_beside_ours() -> None:
    """The names are the keys of a list in the status: twice the same, and the server would refuse all of it."""
    twice = [addon("traefik", "Failed", name="a-mine", ours=False), addon("traefik", version="34")]
    wanted = wanted_addons(cluster(), load_balancers=True)
    for order in (twice, twice[::-1]):
        assert "traefik" in progress(wanted, order).installed
        assert [
            (observed_addon.name, observed_addon.version, observed_addon.managed_by)
            for observed_addon in observed(order)
        ] == [("traefik", "34", "butler")]


def test_the_status_lists_all_addons_by_name() -> None:
    found = observed([addon("traefik"), addon("cilium", "Installing"), addon("mine", "Failed", ours=False)])
    assert [(observed_addon.name, observed_addon.status, observed_addon.managed_by) for observed_addon in found] == [
        ("cilium", "Installing", "butler"),
        ("mine", "Failed", "manual"),
        ("traefik", "Healthy", "butler"),
    ]


def test_the_status_does_not_list_more_than_it_can_hold() -> None:
    assert len(observed([addon(f"a{number}") for number in range(300)])) == 256
