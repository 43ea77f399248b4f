"""`butleradm ipam plan`, `advise` and `forecast` through the real executable."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import click
import pytest

from cli.terminal import Cli, eventually

if TYPE_CHECKING:
    from control_planes import ControlPlane

API = "butler.butlerlabs.dev/v1alpha1"
HOME = f"/apis/{API}/namespaces/butler-system"
Json = dict[str, Any]


def _create(plane: ControlPlane, kind: str, name: str, spec: Json) -> None:
    body = {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": "butler-system"}, "spec": spec}
    code, answer = plane.request("POST", f"{HOME}/{kind.lower()}s", body)
    assert code == 201, answer


def _allocate(plane: ControlPlane, name: str, pool: str, **spec: Any) -> None:
    reference = {"poolRef": {"name": pool}, "tenantClusterRef": {"name": name, "namespace": "team"}}
    _create(plane, "IPAllocation", name, {**reference, "type": "loadbalancer", **spec})


def _phase(plane: ControlPlane, name: str) -> str:
    return str(plane.request("GET", f"{HOME}/ipallocations/{name}")[1].get("status", {}).get("phase", ""))


def _versions(plane: ControlPlane) -> dict[str, str]:
    """What there is, but for the record of a grant in the annotations, which Butler writes a moment later."""
    listed = plane.request("GET", f"{HOME}/ipallocations")[1]["items"]
    return {item["metadata"]["name"]: json.dumps([item["spec"], item.get("status")]) for item in listed}


@pytest.fixture(scope="module", autouse=True)
def pools(plane: ControlPlane) -> None:
    """A small pool with two holes and a request that waits, and a larger one with a history of forty days."""
    _create(plane, "NetworkPool", "small", {"cidr": "10.240.0.0/27"})
    _allocate(plane, "middle", "small", pinnedRange={"startAddress": "10.240.0.14", "endAddress": "10.240.0.17"})
    eventually(lambda: _phase(plane, "middle") == "Allocated", "middle is granted")
    _allocate(plane, "wide", "small", count=20)
    _create(plane, "NetworkPool", "grown", {"cidr": "10.241.0.0/24"})
    names = [f"grown-{number}" for number in range(14)]
    for name in names:
        _allocate(plane, name, "grown", count=8)
    eventually(lambda: all(_phase(plane, name) == "Allocated" for name in names), "the history is granted")
    eventually(lambda: _phase(plane, "wide") == "Failed", "wide is refused")
    random = Random(1)
    for name in names:
        at = (datetime.now(UTC) - timedelta(days=random.uniform(0, 40))).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"{HOME}/ipallocations/{name}"
        granted = plane.request("GET", path)[1]
        granted["status"]["allocatedAt"] = at
        code, answer = plane.request("PUT", f"{path}/status", granted)
        assert code == 200, answer


# plan


def test_a_plan_that_fits_shows_who_gets_what_and_leaves_nothing_behind(adm: Cli, plane: ControlPlane) -> None:
    before = _versions(plane)
    said = adm("ipam", "plan", "--tenants", "2", "--nodes", "5", "--lb", "8", "--pool", "grown")
    assert "planned-1   10.241.0.113-10.241.0.117   grown   10.241.0.118-10.241.0.125   grown" in said
    assert "grown   254     112 -> 138   44% -> 54%   142 -> 116   -" in said
    assert "Both tenants fit in these pools" in said
    found = adm.json("ipam", "plan", "--tenants", "2", "--pool", "grown")
    assert found["tenants"][0]["blocks"][0]["range"] == {"start": "10.241.0.113", "end": "10.241.0.117", "count": 5}
    assert _versions(plane) == before


def test_a_plan_that_does_not_fit_names_the_first_that_fails_and_says_so_by_its_exit_code(adm: Cli) -> None:
    said = adm.run("ipam", "plan", "--tenants", "12", "--pool", "grown")
    assert (said.code, said.err) == (8, ""), str(said)
    assert "… 7 more" in said.out
    assert "10 of 12 tenants fit in these pools" in said.out
    assert "planned-11 is the first that does not: no load-balancer addresses: pool grown: needs 8" in said.out
    assert "- -> Critical (85%)" in said.out or "- -> Exhausted (95%)" in said.out


def test_a_single_request_meets_those_that_wait(adm: Cli) -> None:
    said = adm.run("ipam", "plan", "--count", "14", "--pool", "small")
    assert said.code == 8, str(said)
    assert "wide        small   loadbalancer      20   PoolFragmented" in said.out
    assert "planned-request-1: needs 14 contiguous addresses; small has 26 free, but the longest run is 13" in said.out


def test_an_edit_tells_who_would_be_stranded(adm: Cli) -> None:
    said = adm.run("ipam", "plan", "--pool", "small", "--reserve", "10.240.0.16/28")
    assert said.code == 8, str(said)
    assert "would be refused: spec.reserved[0].cidr: 10.240.0.16/28 would take addresses in use: middle" in said.out
    found = json.loads(adm.run("ipam", "plan", "--pool", "small", "--reserve", "10.240.0.16/28", "-o", "json").out)
    assert found["edit"]["stranded"] == [
        {"name": "middle", "tenant": "team/middle",
         "range": {"start": "10.240.0.14", "end": "10.240.0.17", "count": 4}}
    ]  # fmt: skip


def test_growing_is_tried_before_the_tenants_come(adm: Cli) -> None:
    assert adm.run("ipam", "plan", "--pool", "small", "--tenants", "3").code == 8
    said = adm("ipam", "plan", "--pool", "small", "--cidr", "10.240.0.0/25", "--tenants", "3")
    assert "would be accepted; no address in use is left out." in said
    assert "wide        small   loadbalancer      20   10.240.0.18-10.240.0.37" in said
    assert "All 3 tenants fit" in said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "say what to try: --tenants N, --count N, or --pool with --cidr, --window or --reserve"),
        (["--lb", "3"], 2, "say how many with --tenants"),
        (
            ["--tenants", "2", "--type", "nodes"],
            2,
            "--type says what a single request is for: say how large with --count",
        ),
        (["--count", "3"], 2, "--count asks one pool: name it with --pool"),
        (["--cidr", "10.0.0.0/8", "--pool", "small", "--pool", "grown"], 2, "change one pool: name it with --pool"),
        (["--pool", "small", "--window", "10.240.0.1"], 2, "write it as in 10.60.0.32-10.60.0.254"),
        (["--tenants", "0"], 2, "0 is not in the range"),
        (["--tenants", "1"], 1, "nothing says where the tenants would go: name pools with --pool"),
        (
            ["--tenants", "1", "--pool", "smal"],
            3,
            "there is no NetworkPool smal in namespace butler-system; did you mean",
        ),
        (["--tenants", "1", "--provider", "lab"], 3, "there is no ProviderConfig lab in namespace butler-system"),
        (["--count", "1", "--pool", "small", "--as", "stranger"], 4, "ask an administrator"),
    ],
)
def test_a_question_that_cannot_be_answered(adm: Cli, arguments: list[str], code: int, words: str) -> None:
    assert words in adm.refused(code, "ipam", "plan", *arguments)


def test_an_edit_that_makes_no_sense_is_told_in_the_words_of_admission(adm: Cli) -> None:
    said = adm.run("ipam", "plan", "--pool", "small", "--cidr", "10.240.0.1/27")
    assert said.code == 8
    assert "10.240.0.1/27 has bits set after its prefix: the network is 10.240.0.0/27" in said.out


def test_a_narrow_terminal_gets_lines_that_fit(adm: Cli) -> None:
    for command in (["plan", "--tenants", "12", "--pool", "grown"], ["advise", "small"], ["forecast", "grown"]):
        said = adm.in_terminal("ipam", *command, columns=60)
        long = [line for line in said.out.splitlines() if len(click.unstyle(line)) > 60]
        assert not long, str(said)
        assert "…" not in said.out.replace("… 7 more", ""), "nothing is cut"


def test_without_utf8_everything_is_ascii(adm: Cli) -> None:
    plain: dict[str, Any] = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    said = adm.run("ipam", "plan", "--tenants", "12", "--pool", "grown", **plain)
    assert "... 7 more" in said.out, str(said)


def test_a_server_that_is_away_is_told(tmp_path: Any) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:9"}}],
    }  # fmt: skip
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    assert "cannot be reached" in Cli(file).refused(5, "ipam", "advise")


# advise


def test_advice_names_the_holes_what_waits_and_what_it_would_cost(adm: Cli) -> None:
    said = adm("ipam", "advise", "small")
    assert "small (10.240.0.0/27): 26 of 30 addresses are free, in 2 holes: 13 (10.240.0.1-10.240.0.13)" in said
    assert "The largest request that fits is 13; 14 to 26 would fail, though 26 are free." in said
    assert "1 request cannot be met: wide (needs 20)." in said
    assert "may be IN USE by team/middle (Butler has never seen this tenant, and cannot tell)" in said
    found = adm.json("ipam", "advise", "small")["pools"][0]
    assert found["openings"][0]["hole"] == {"start": "10.240.0.1", "end": "10.240.0.30", "count": 30}
    assert (found["openings"][0]["liveAddresses"], found["openings"][0]["meets"]) == (4, ["wide"])


def test_what_was_made_for_a_tenant_that_was_never_seen_is_never_called_unused(
    adm: Cli, plane: ControlPlane, network: str
) -> None:
    name = f"never-{network.replace('.', '-')}"
    _create(plane, "NetworkPool", name, {"cidr": f"{network}.0.0/28"})
    for number in range(3):
        _allocate(plane, f"{name}-{number}", name, count=4)
        eventually(lambda n=number: _phase(plane, f"{name}-{n}") == "Allocated", "it is granted")
    plane.request("DELETE", f"{HOME}/ipallocations/{name}-1")
    eventually(lambda: plane.request("GET", f"{HOME}/ipallocations/{name}-1")[0] == 404, "it is gone")
    said = adm("ipam", "advise", name)
    assert "Butler has never seen this tenant, and cannot tell" in said
    assert "would have to move first, with up to 4 live addresses" in said
    assert "allocation release" not in said


def test_a_pool_that_is_not_fragmented_asks_no_tenant_to_leave(adm: Cli) -> None:
    said = adm("ipam", "advise", "grown")
    assert "everything that is free. It is not fragmented." in said
    assert "Without" not in said
    found = adm.json("ipam", "advise", "grown")["pools"][0]
    assert found["openings"] == []
    assert "Unused" not in said, "its tenant was never seen, so nothing is known"


def test_all_pools_are_advised_on_and_none_is_an_answer_too(adm: Cli) -> None:
    assert {pool["pool"] for pool in adm.json("ipam", "advise")["pools"]} >= {"small", "grown"}
    said = adm.run("ipam", "advise", "-n", "default")
    assert (said.code, said.out) == (0, "")
    assert "There are no pools in namespace default. `butleradm pool create` makes one." in said.err
    assert "did you mean small" in adm.refused(3, "ipam", "advise", "smal")
    assert "ask an administrator" in adm.refused(4, "ipam", "advise", "--as", "stranger")


# forecast


def test_a_forecast_is_a_band_and_says_what_it_rests_on(adm: Cli) -> None:
    said = adm("ipam", "forecast", "grown")
    assert "grown (10.241.0.0/24): 44% of 254 addresses are allocated; the longest free run is 142." in said
    assert "It rests on 14 arrivals with 112 addresses in" in said
    assert "and on the last 24 h, in which no tenant left." in said
    assert "Older releases are no longer on record" in said
    found = adm.json("ipam", "forecast", "grown", "--size", "24")["pools"][0]
    assert [refusal["size"] for refusal in found["refusals"]] == [24]
    warning = found["tiers"][0]
    assert (warning["percent"], warning["now"]) == (70, False)
    assert 1 < warning["days"]["low"] < warning["days"]["median"]


def test_not_enough_record_is_an_answer(adm: Cli) -> None:
    said = adm("ipam", "forecast", "small")
    assert "Not enough is on record to say: 0 arrivals in" in said
    assert "What is so already: no room for 16" in said


def test_a_forecast_for_nothing_no_tenant_or_nowhere(adm: Cli) -> None:
    assert "There are no pools in namespace default." in adm.run("ipam", "forecast", "-n", "default").err
    assert "ask an administrator" in adm.refused(4, "ipam", "forecast", "--as", "stranger")
    assert "did you mean grown" in adm.refused(3, "ipam", "forecast", "gown")
    assert "0 is not in the range" in adm.refused(2, "ipam", "forecast", "--size", "0")
