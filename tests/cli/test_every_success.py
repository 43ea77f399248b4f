"""Every command once where it does what it is for, and once where it refuses.

Those that print screens succeed in test_every_terminal.py; here are the others, most of which change something. Each
has what it needs from the small estate and changes what no other row looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
import yaml

from cli.estates import RACK, allocation_body, create, make_allocation, make_small_estate, pool_body, read
from cli.every import PROVIDER, covers_all, words
from cli.screens import SCREENS, WEB
from cli.terminal import Cli, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane
    from local_server import LocalServer

GROUP = "butler.butlerlabs.dev"
FOR_X = f"--pool {RACK} --tenant t/x --type nodes"
DONE = {
    "butleradm pool create": ("made --cidr 10.3.0.0/24", f"networkpool.{GROUP}/made created"),
    "butleradm pool edit": (RACK, f"networkpool.{GROUP}/{RACK} edited"),
    "butleradm pool grow": ("spare --window 10.78.0.30-10.78.0.39", f"networkpool.{GROUP}/spare grown"),
    "butleradm pool delete": ("useless --yes", f"networkpool.{GROUP}/useless deleted"),
    "butleradm allocation create": (f"new {FOR_X} --count 1", f"ipallocation.{GROUP}/new created"),
    "butleradm allocation pin": (f"pinned {FOR_X} --range 10.77.2.1-10.77.2.2", f"ipallocation.{GROUP}/pinned created"),
    "butleradm allocation release": ("leaving --yes", f"ipallocation.{GROUP}/leaving released"),
    "butleradm ipam export": ("", f"{RACK},team-shop,shop,nodes,10.77.0.16,10.77.0.20,5,Allocated,"),
    "butleradm provider create": ("-f {provider}", f"providerconfig.{GROUP}/cloud created"),
    "butleradm crds": ("--kind NetworkPool", "kind: CustomResourceDefinition"),
    "butleradm completion": ("bash", "_butleradm_completion"),
    "butlerctl cluster create": (
        "made -n team-platform --kubernetes-version v1.33.2 --provider harvester-production",
        f"tenantcluster.{GROUP}/made created",
    ),
    "butlerctl cluster scale": (f"{WEB} --workers 3", f"tenantcluster.{GROUP}/web scaled from 2 to 3 workers"),
    "butlerctl cluster upgrade": (
        f"{WEB} --version v1.34.1",
        f"tenantcluster.{GROUP}/web upgraded from v1.33.2 to v1.34.1",
    ),
    "butlerctl cluster kubeconfig": (WEB, "kind: Config"),
    "butlerctl context use": ("butler --kubeconfig {mine}", "butler is the current context now"),
    "butlerctl context namespace": ("team-a --kubeconfig {mine}", "looks into namespace team-a now"),
    "butlerctl completion": ("zsh", "#compdef butlerctl"),
}
"""A call, and the beginning of what it prints, or a part of that."""
ELSEWHERE = {
    "butleradm local up": "every module of tests/cli begins with it",
    "butleradm local down": "test_local.py",
    "butleradm local reset": "test_local.py",
    "butleradm local world": "tests/local",
    "butleradm controller run": "tests/ipam",
    "butleradm server run": "tests/server",
    "butleradm server link": "tests/server/test_access_commands.py",
    "butleradm server password": "tests/server/test_access_commands.py",
}


class No(NamedTuple):
    """A call that is refused, with which exit code, and a part of the sentence."""

    arguments: str
    code: int
    says: str


XML = No("-o xml", 2, "'xml' is not one of ")
REFUSED = {
    "butleradm pool list": XML,
    "butleradm pool get": No("rack-10-78", 3, f"did you mean {RACK}"),
    "butleradm pool map": No(f"{RACK} --zoom 10.1.0.0/24", 2, f"10.1.0.0/24 is no part of {RACK}"),
    "butleradm pool free": No(f"{RACK} --size 5000", 8, "nothing fits: "),
    "butleradm pool overlaps": XML,
    "butleradm pool create": No("twin --cidr 10.77.0.0/24", 1, "choose a network that no other pool uses"),
    "butleradm pool edit": No(f"{RACK} -n default", 3, "there is one in butler-system: say -n butler-system"),
    "butleradm pool grow": No("spare", 2, "say by how much: --cidr, --window or --by"),
    "butleradm pool reserve": No(f"{RACK} 10.1.0.0/28", 1, "10.1.0.0/28"),
    "butleradm pool delete": No(f"{RACK} --yes", 1, "has addresses in use: shop-nodes"),
    "butleradm allocation list": No("--phase Lost", 2, "'Lost' is not one of"),
    "butleradm allocation get": No("shop-node", 3, "did you mean shop-nodes"),
    "butleradm allocation create": No(f"shop-nodes {FOR_X} --count 2", 6, "choose another name"),
    "butleradm allocation pin": No(f"odd {FOR_X} --range 10.77.0.9-10.77.0.1", 2, "10.77.0.9"),
    "butleradm allocation release": No("shop-lb", 2, "There is no terminal to ask in: say --yes"),
    "butleradm ipam who": No("10.77.0.300", 2, "is not an IP address"),
    "butleradm ipam plan": No("--count 4", 2, "--count asks one pool: name it with --pool"),
    "butleradm ipam advise": No("rack-10-78", 3, f"did you mean {RACK}"),
    "butleradm ipam forecast": No("rack-10-78", 3, f"did you mean {RACK}"),
    "butleradm ipam fsck": No("--dry-run=client", 2, "--dry-run says what --repair would do: give both"),
    "butleradm ipam export": No("--pool rack-10-78", 3, f"did you mean {RACK}"),
    "butleradm ipam import": No("{provider} --format csv", 1, "is not known"),
    "butleradm provider list": XML,
    "butleradm provider get": No("harvester", 3, "did you mean harvester-production"),
    "butleradm provider create": No("", 2, "-f FILE"),
    "butleradm provider validate": No("", 2, "say what to validate: the NAME of a provider, or -f FILE"),
    "butleradm tenant list": XML,
    "butleradm tenant get": No("wep", 3, "did you mean web?"),
    "butleradm local up": No("--port 99999999", 2, "--port"),
    "butleradm local world": No("--port 99999999", 2, "--port"),
    "butleradm local status": XML,
    "butleradm local down": No("--data-dir {nowhere} --timeout x", 2, "'x' is not a valid"),
    "butleradm local reset": No("--data-dir {nowhere} --yes", 3, "nothing was deleted"),
    "butleradm controller run": No("--webhook-service a/b", 2, "need --webhook-port"),
    "butleradm server run": No("", 2, "there is no way to log in: give --oidc-issuer, --local-admin, or --local"),
    "butleradm server link": No("--as-group x", 2, "--as-group needs --as"),
    "butleradm server password": No("--as-group x", 2, "--as-group needs --as"),
    "butleradm crds": No("--kind Pod", 2, "Pod"),
    "butleradm doctor": XML,
    "butleradm completion": No("tcsh", 2, "'tcsh' is not one of"),
    "butleradm version": XML,
    "butlerctl cluster list": XML,
    "butlerctl cluster get": No("web", 3, "there is one in team-platform: say -n team-platform"),
    "butlerctl cluster create": No("web -n team-platform --kubernetes-version v1.33.2", 6, "choose another name"),
    "butlerctl cluster scale": No(f"{WEB} --workers 1", 2, "There is no terminal to ask in: say --yes"),
    "butlerctl cluster upgrade": No(f"{WEB} --version v1.20.0", 1, "v1.20.0"),
    "butlerctl cluster delete": No(WEB, 2, "There is no terminal to ask in: say --yes"),
    "butlerctl cluster kubeconfig": No("wep -n team-platform", 3, "did you mean web?"),
    "butlerctl cluster events": No("wep -n team-platform", 3, "did you mean web?"),
    "butlerctl cluster addresses": No("wep -n team-platform", 3, "did you mean web?"),
    "butlerctl context list": XML,
    "butlerctl context use": No("buttler --kubeconfig {mine}", 3, "did you mean butler?"),
    "butlerctl context namespace": No("Team_A --kubeconfig {mine}", 2, "is no name of a namespace"),
    "butlerctl completion": No("tcsh", 2, "'tcsh' is not one of"),
    "butlerctl version": XML,
}


@pytest.fixture(scope="module")
def plane(server: LocalServer) -> ControlPlane:
    """The small estate, and what the rows above use up."""
    plane = server.plane
    make_small_estate(plane, server.data_dir)
    window = {"start": "10.78.0.10", "end": "10.78.0.19"}
    create(plane, "networkpools", pool_body("spare", "10.78.0.0/24", tenantAllocation=window))
    create(plane, "networkpools", pool_body("useless", "10.79.0.0/24"))
    make_allocation(plane, allocation_body("leaving", RACK, "team-shop/leaving", count=1))
    eventually(lambda: "Ready" in str(read(plane, "networkpools", "spare").get("status")), "spare is ready")
    return plane


@pytest.fixture(scope="module")
def places(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "provider.yaml").write_text(yaml.safe_dump(PROVIDER))
    (folder / "mine").write_text(plane.kubeconfig.read_text())
    return {"provider": folder / "provider.yaml", "mine": folder / "mine", "nowhere": folder / "nowhere"}


def test_no_command_is_forgotten() -> None:
    covers_all(SCREENS, DONE, ELSEWHERE)
    covers_all(REFUSED)


@pytest.mark.parametrize("call", REFUSED)
def test_a_refusal_is_one_sentence_with_its_exit_code(call: str, plane: ControlPlane, places: dict[str, Path]) -> None:
    no, (program, typed) = REFUSED[call], words(call, REFUSED[call].arguments, **places)
    said = Cli(plane.kubeconfig, program, EDITOR="true").run(*typed)
    assert said.code == no.code, str(said)
    assert no.says in said.error, str(said)
    assert "Traceback" not in said.err
    assert "defect" not in said.err


@pytest.mark.parametrize("call", DONE)
def test_a_command_does_what_it_is_for(call: str, plane: ControlPlane, places: dict[str, Path]) -> None:
    arguments, says = DONE[call]
    program, typed = words(call, arguments, **places)
    said = Cli(plane.kubeconfig, program, EDITOR="sed -i s/switches/routers/").run(*typed)
    assert said.code == 0, str(said)
    assert says in said.out, str(said)
    assert "\x1b" not in said.out + said.err
