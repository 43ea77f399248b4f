"""`butleradm pool get, map, free, overlaps`: what is there, through the real executable."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from typing import TYPE_CHECKING

import click
import pytest

from cli.pools import HOME, allocation_body, apply, grant, granted, pool_body, set_status
from cli.terminal import Cli, eventually
from ipam_operator import Desk
from local.older_definition import older_definition, write
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control_planes import ControlPlane

SPEC = {
    "reserved": [{"cidr": "10.240.0.0/28", "description": "Racks and switches"}],
    "tenantAllocation": {
        "ranges": [{"start": "10.240.0.16", "end": "10.240.0.127"}, {"start": "10.240.0.160", "end": "10.240.0.223"}]
    },
}


@pytest.fixture(scope="module", autouse=True)
def vlan40(plane: ControlPlane) -> None:
    apply(plane, pool_body("vlan40", "10.240.0.0/24", **SPEC))
    grant(
        plane,
        "vlan40",
        ("shop-nodes", "team-a/shop", 12),
        ("shop-lb", "team-a/shop", 4),
        ("bank-nodes", "team-b/bank", 9),
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A server that accepts whatever users write: no controllers, no admission."""
    with LocalServer(tmp_path_factory.mktemp("bare")) as running:
        yield running.plane


# get


def test_get_tells_all_on_one_screen(adm: Cli) -> None:
    said = adm("pool", "get", "vlan40")
    for part in (
        "Pool:       vlan40 in butler-system",
        "State:      Ready",
        "Network:    10.240.0.0/24 (256 addresses)",
        "Windows:    10.240.0.16-10.240.0.127 (112)",
        "Use:        25 of 176 addresses held (14%), 151 free",
        "Tiers:      warning from 124 on (70%): 99 to go",
        "Free:       151 in 2 blocks, the largest 112 (10.240.0.16-10.240.0.127);",
        "Reserved:   10.240.0.0/28  Racks and switches",
        "Free blocks by size:",
        "team-a/shop          16     64%             2",
        "CapacityWarning    False",
        "IPsAllocated: granted shop-nodes",
    ):
        assert part in said, f"{part!r} is not in\n{said}"
    assert "Wrong" not in said


def test_get_fits_a_narrow_terminal(adm: Cli) -> None:
    said = adm.in_terminal("pool", "get", "vlan40", columns=60)
    assert said.code == 0, str(said)
    assert all(len(click.unstyle(line)) <= 60 for line in said.out.splitlines()), str(said)


def test_get_gives_the_servers_own_object_to_programs(adm: Cli) -> None:
    assert adm.json("pool", "get", "vlan40")["status"]["totalIPs"] == 176
    assert adm("pool", "get", "vlan40", "-o", "name") == "networkpool.butler.butlerlabs.dev/vlan40\n"
    assert adm("pool", "get", "vlan40", "-o", "jsonpath={.spec.cidr}") == "10.240.0.0/24"


def test_a_pool_that_is_not_there_is_missed_with_the_names_that_sound_like_it(adm: Cli) -> None:
    for command in (("get",), ("edit",), ("grow", "--by", "1")):
        complaint = adm.refused(3, "pool", command[0], "vlan4", *command[1:])
        assert complaint == "there is no NetworkPool vlan4 in namespace butler-system; did you mean vlan40?"


@pytest.mark.parametrize(
    "command",
    [
        ("get", "vlan40"),
        ("map", "vlan40"),
        ("free", "vlan40"),
        ("overlaps",),
        ("edit", "vlan40"),
        ("grow", "vlan40", "--by", "4"),
        ("reserve", "vlan40", "10.240.0.99"),
        ("delete", "vlan40"),
        ("create", "vlan41", "--cidr", "10.241.0.0/24"),
    ],
)
def test_who_is_not_allowed_is_told_so(adm: Cli, command: tuple[str, ...]) -> None:
    assert "ask an administrator" in adm.refused(4, "pool", *command, "--as", "stranger")


def test_a_server_that_is_away_is_one_sentence(plane: ControlPlane, tmp_path: Path) -> None:
    config = plane.kubeconfig.read_text().replace(plane.url, "https://127.0.0.1:1")
    (tmp_path / "away").write_text(config)
    complaint = Cli(tmp_path / "away").refused(5, "pool", "get", "vlan40")
    assert complaint.startswith("the API server at https://127.0.0.1:1 cannot be reached")
    assert "no Kubernetes API server is configured" in Cli(None).refused(5, "pool", "map", "vlan40")


# map


def test_the_map_has_every_address_in_its_place(adm: Cli) -> None:
    said = adm("pool", "map", "vlan40", COLUMNS="100")
    rows = dict(line.split("  ", 1) for line in said.splitlines() if line.startswith("10.240.0."))
    cells = "".join(row.replace(" ", "") for row in rows.values())
    assert len(cells) == 256
    assert cells[:16] == "▒" * 16
    assert cells[16:128] == "·" * 112
    assert cells[128:160] == "-" * 32
    assert cells[160:185] == "A" * 16 + "B" * 9
    assert "A    team-a/shop      16  10.240.0.160/28" in said


def test_the_map_is_ascii_where_the_terminal_has_no_more(adm: Cli) -> None:
    said = adm("pool", "map", "vlan40", PYTHONIOENCODING="ascii", COLUMNS="60")
    assert said.isascii()
    assert "10.240.0.0    ######## ######## ........ ........" in said


def test_the_map_fits_its_terminal_and_is_coloured_only_where_that_is_wanted(adm: Cli) -> None:
    for columns in (60, 160):
        said = adm.in_terminal("pool", "map", "vlan40", columns=columns)
        assert "\x1b[" in said.out
        assert all(len(click.unstyle(line)) <= columns for line in said.out.splitlines()), str(said)
    assert "\x1b[" not in adm.in_terminal("pool", "map", "vlan40", NO_COLOR="1").out


def test_the_map_shows_a_part(adm: Cli) -> None:
    zoomed = adm("pool", "map", "vlan40", "--zoom", "10.240.0.160/27")
    assert zoomed.startswith("10.240.0.160/27 of vlan40 (10.240.0.0/24): 25 of 32 addresses held (78%), 7 free\n")
    part = adm("pool", "map", "vlan40", "--from", "10.240.0.170", "--to", "10.240.0.180")
    assert part.startswith("10.240.0.170-10.240.0.180 of vlan40")
    assert adm("pool", "map", "vlan40", "--from", "10.240.0.250").startswith("10.240.0.250-10.240.0.255 of vlan40")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--zoom", "10.1.0.0/24"), "10.1.0.0/24 is no part of vlan40 (10.240.0.0/24): name addresses inside it"),
        (("--zoom", "banana"), "'banana' is not a network"),
        (
            ("--from", "10.240.0.9", "--to", "10.240.0.1"),
            "--to 10.240.0.1 comes before --from 10.240.0.9: swap the two",
        ),
        (("--from", "fd00::1", "--to", "10.240.0.9"), "fd00::1 is no part of vlan40 (10.240.0.0/24)"),
        (("--from", "10.240.0.9", "--to", "fd00::1"), "fd00::1 is no part of vlan40 (10.240.0.0/24)"),
        (("--from", "10.241.0.0"), "10.241.0.0 is no part of vlan40 (10.240.0.0/24)"),
        (("--from", "banana"), "'banana' is not an IP address"),
        (("--from", "10.240.0.9", "--zoom", "10.240.0.0/28"), "--zoom stands in place of --from and --to"),
    ],
)
def test_a_part_that_makes_no_sense_is_refused(adm: Cli, options: tuple[str, ...], complaint: str) -> None:
    assert complaint in adm.refused(2, "pool", "map", "vlan40", *options)


def test_segments_for_programs_have_no_gaps(adm: Cli) -> None:
    made = adm.json("pool", "map", "vlan40")
    assert sum(segment["count"] for segment in made["segments"]) == made["count"] == 256
    rows = list(csv.DictReader(io.StringIO(adm("pool", "map", "vlan40", "-o", "csv"))))
    assert [row["start"] for row in rows] == [segment["start"] for segment in made["segments"]]
    held = next(row for row in rows if row["allocation"] == "bank-nodes")
    assert (held["kind"], held["tenant"], held["type"], held["count"]) == ("allocated", "team-b/bank", "nodes", "9")


# free


def test_free_names_all_blocks_and_says_which_one_a_request_gets(adm: Cli, plane: ControlPlane, network: str) -> None:
    ranges = [
        {"start": f"{network}.0.1", "end": f"{network}.0.30"},
        {"start": f"{network}.0.40", "end": f"{network}.0.49"},
    ]
    apply(plane, pool_body("finding", f"{network}.0.0/24", tenantAllocation={"ranges": ranges}))
    eventually(lambda: "Ready" in adm("pool", "list"), "ready")
    said = adm.run("pool", "free", "finding", "--size", "8")
    assert [line.split() for line in said.out.splitlines()] == [
        ["START", "END", "SIZE", "FIT", "BEST", "FIT"],
        [f"{network}.0.1", f"{network}.0.30", "30", f"{network}.0.1-{network}.0.8", "-"][:4],
        [f"{network}.0.40", f"{network}.0.49", "10", f"{network}.0.40/29", "*"],
    ], str(said)
    foreseen = adm("pool", "free", "finding", "--size", "8", "-o", "jsonpath={.bestFit.start}-{.bestFit.end}")
    grant(plane, "finding", ("found", "team-f/found", 8))
    assert granted(plane, "found") == foreseen


def test_free_finds_networks_and_says_that_butler_does_not_align(adm: Cli) -> None:
    said = adm.run("pool", "free", "vlan40", "--size", "16", "--align")
    assert "10.240.0.16/28" in said.out
    said = adm.run("pool", "free", "vlan40", "--size", "4", "--align")
    assert "10.240.0.188/30" in said.out
    assert "not aligned: pin one of these" in said.err
    assert "ask for 16" in adm.refused(2, "pool", "free", "vlan40", "--size", "12", "--align")


def test_nothing_that_fits_is_a_finding_with_the_reason(adm: Cli) -> None:
    complaint = adm.refused(8, "pool", "free", "vlan40", "--size", "120")
    assert complaint.startswith("nothing fits: needs 120 contiguous addresses; vlan40 has 151 free, but")
    said = adm.run("pool", "free", "vlan40", "--size", "120", "-o", "json")
    assert (said.code, json.loads(said.out)["blocks"]) == (8, [])


# What should not be


def test_an_estate_that_is_well_has_no_overlaps(adm: Cli) -> None:
    said = adm.run("pool", "overlaps")
    assert (said.code, said.err) == (0, "")
    assert "share nothing" in said.out


def test_absurd_estates_are_shown_and_break_nothing(bare: ControlPlane) -> None:
    adm = Cli(bare.kubeconfig)
    crossed = [{"cidr": "10.9.0.0/28"}, {"cidr": "10.9.0.8/29", "description": "twice"}]
    apply(
        bare,
        pool_body("one", "10.8.0.0/24"),
        pool_body("two", "10.8.0.128/25"),
        pool_body("invalid", "10.9.0.0/24", reserved=crossed),
        pool_body("empty", "10.10.0.0/30", reserved=[{"cidr": "10.10.0.0/30"}]),
        *(allocation_body(name, "one", f"team/{name}") for name in ("a", "b", "far", "absurd", "half", "reversed")),
        allocation_body("c", "invalid"),
        allocation_body("orphan", "gone"),
    )
    odd = (
        ("a", "10.8.0.8", "10.8.0.15"),
        ("b", "10.8.0.12", "10.8.0.19"),
        ("far", "10.99.0.1", "10.99.0.4"),
        ("absurd", "banana", "10.8.0.9"),
        ("half", "10.8.0.250", "10.8.1.9"),
        ("reversed", "10.8.0.40", "10.8.0.30"),
        ("c", "10.9.0.32", "10.9.0.39"),
        ("orphan", "10.11.0.1", "10.11.0.2"),
    )
    with closing(Desk(bare, HOME)) as desk, older_definition(desk):
        for name, start, end in odd:
            write(desk, name, {"phase": "Allocated", "startAddress": start, "endAddress": end})
    promised = [{"uid": "unknown", "name": "ghost", "startAddress": "kiwi", "endAddress": "10.8.0.77"}]
    set_status(bare, "networkpools", "one", totalIPs=3, allocatedIPs=99999, intents=promised, claimedCIDR="banana")

    told = adm("pool", "get", "one")
    for part in (
        "10.8.0.12-10.8.0.15 is held by a and b",
        "Wrong:      10.8.0.1-10.8.0.7 is held by absurd and reversed",  # which may mean any address
        "absurd of this pool holds banana-10.8.0.9",
        "reversed of this pool holds 10.8.0.40-10.8.0.30",
        "Doubtful:   status.totalIPs is 3, a recount gives 254",
        "No conditions: Butler's controllers have not looked at it yet.",
    ):
        assert part in told, told
    drawn = adm.run("pool", "map", "one", COLUMNS="100")
    assert "!    held twice            241  10.8.0.1-10.8.0.7 (absurd and reversed) and 2 more" in drawn.out, str(drawn)
    assert "not on the map, or not all of it: far of team/far holds 10.99.0.1-10.99.0.4" in drawn.err
    assert "Wrong:      hands out nothing: spec.reserved[1].cidr: 10.9.0.8/29 overlaps" in adm("pool", "get", "invalid")
    assert "hands out nothing, 8 addresses held" in adm("pool", "map", "invalid")
    assert "it is not valid" in adm.refused(8, "pool", "free", "invalid")
    assert "nothing of 10.10.0.0/30 is left" in adm("pool", "get", "empty")
    assert "put it right first" in adm.refused(1, "pool", "grow", "invalid", "--by", "8")

    found = adm.run("pool", "overlaps", "-o", "json")
    assert found.code == 8
    troubles = [
        (finding["trouble"], finding["subjects"][0].rpartition("/")[2]) for finding in json.loads(found.out)["findings"]
    ]
    assert sorted(troubles) == [
        ("HeldTwice", "a"),
        ("NoSuchPool", "orphan"),
        ("OutsidePool", "far"),
        ("OutsidePool", "half"),
        ("OutsidePool", "half"),
        ("PoolsOverlap", "one"),
        ("Unreadable", "absurd"),
        ("Unreadable", "reversed"),
    ]
    table = adm.run("pool", "overlaps", COLUMNS="72")
    assert table.code == 8
    assert all(len(line) <= 72 for line in table.out.splitlines())
    assert adm.run("pool", "overlaps", "-o", "csv").out.startswith("trouble,start,end,count,subjects,message\n")
