"""Every command that prints tables or screens, with a call on the small estate of estates.py and what it must tell."""

from __future__ import annotations

from typing import NamedTuple

from cli.estates import RACK


class Screen(NamedTuple):
    """A call, and facts that stand in what it prints however narrow it is."""

    arguments: str
    facts: tuple[str, ...]
    code: int = 0


WEB = "web -n team-platform"
SCREENS = {
    "butleradm pool list": Screen("-A", (RACK, "10.77.0.0/20", "production-nodes", "production-pool", "Ready")),
    "butleradm pool get": Screen(RACK, ("13 of 4,079 addresses held", "team-shop/shop", "CapacityWarning", "switches")),
    "butleradm pool map": Screen(RACK, ("13 of 4,079 addresses held", "team-shop/shop", "not handed out")),
    "butleradm pool free": Screen(f"{RACK} --size 12", ("10.77.0.32-10.77.0.43", "4063", "*")),
    "butleradm pool overlaps": Screen("", ("All is well: 3 pools and 5 allocations share nothing.",)),
    "butleradm pool reserve": Screen(f"{RACK} 10.77.9.0/28 --dry-run=client", ("largest free block", "2,272")),
    "butleradm allocation list": Screen("", ("shop-nodes", "team-shop/shop", "Allocated", "10.77.0.16-10.77.0.20")),
    "butleradm allocation get": Screen("too-large", ("Failed", "PoolExhausted", "needs 4090 contiguous addresses")),
    "butleradm ipam who": Screen("10.77.0.17", ("held", "team-shop/shop", "shop-nodes", "10.77.0.16-10.77.0.20")),
    "butleradm ipam plan": Screen("--tenants 3", ("planned-3", "10.92.92.25-10.92.92.27", "6% -> 25%", "tenants fit")),
    "butleradm ipam advise": Screen(
        "", ("It is not fragmented.", "too-large (needs 4090)", "shop-lb would have to move first")
    ),
    "butleradm ipam forecast": Screen("", (RACK, "Not enough is on record to say")),
    "butleradm ipam fsck": Screen("--pool production-pool", ("Clean: 3 pools, 5 allocations, 1 tenant.",)),
    "butleradm ipam import": Screen("{rows} --dry-run=client", ("team-old/legacy", "10.77.3.1-10.77.3.4")),
    "butleradm provider list": Screen("", ("harvester-production", "ipam", "yes")),
    "butleradm provider get": Screen("harvester-production", ("production-nodes", "10.92.92.1", "team-platform/web")),
    "butleradm provider validate": Screen("harvester-production", ("warning", "cannot reach the provider"), 8),
    "butleradm tenant list": Screen("", ("team-platform", "web", "Ready")),
    "butleradm tenant get": Screen(
        "web", ("team-platform/web", "LoadBalancersReady", "10.92.90.49-10.92.90.50", "cilium")
    ),
    "butleradm doctor": Screen("", ("PASS", "in step with the server's", "1 known, none in trouble")),
    "butleradm version": Screen("", ("Client", "butler.butlerlabs.dev/v1alpha1")),
    "butleradm local status": Screen(
        "--data-dir {data}", ("up", "3 pools, 5 allocations, 1 provider, 1 tenant cluster")
    ),
    "butlerctl cluster list": Screen("-A", ("team-platform", "web", "Ready", "v1.33.2", "1/2")),
    "butlerctl cluster get": Screen(WEB, ("team-platform/web", "2 of 2 ready", "10.92.92.16-10.92.92.18", "cilium")),
    "butlerctl cluster events": Screen(WEB, ("ClusterReady", "the cluster can be used")),
    "butlerctl cluster addresses": Screen(WEB, ("10.92.92.16", "10.92.90.49", "traefik/traefik", "in step")),
    "butlerctl cluster delete": Screen(f"{WEB} --dry-run=client", ("team-platform/web", "10.92.90.49-10.92.90.50")),
    "butlerctl context list": Screen("", ("butler", "https://127.0.0.1:")),
    "butlerctl version": Screen("", ("Client", "butler.butlerlabs.dev/v1alpha1")),
}
LINES = {
    "butleradm pool create": "what was made, in one line for scripts",
    "butleradm pool edit": "what was changed, in one line for scripts",
    "butleradm pool grow": "as pool reserve, by the same code",
    "butleradm pool delete": "what was deleted, in one line for scripts",
    "butleradm allocation create": "what was made, in one line for scripts",
    "butleradm allocation pin": "what was made, in one line for scripts",
    "butleradm allocation release": "what was released, in one line for scripts",
    "butleradm ipam export": "CSV, which is never folded",
    "butleradm provider create": "what was made, in one line for scripts",
    "butleradm local up": "where it is, which has to be copied whole",
    "butleradm local world": "where it is, which has to be copied whole",
    "butleradm local down": "what was stopped, in one line",
    "butleradm local reset": "what was deleted, in one line",
    "butleradm controller run": "a log",
    "butleradm server run": "a log",
    "butleradm server link": "a link, to be opened",
    "butleradm server password": "one word",
    "butleradm crds": "YAML",
    "butleradm completion": "a script",
    "butlerctl cluster create": "what was made, in one line for scripts",
    "butlerctl cluster scale": "what was changed, in one line for scripts",
    "butlerctl cluster upgrade": "what was changed, in one line for scripts",
    "butlerctl cluster kubeconfig": "YAML",
    "butlerctl context use": "what was changed, in one line",
    "butlerctl context namespace": "one word",
    "butlerctl completion": "a script",
}
"""They print no tables and no screens."""
