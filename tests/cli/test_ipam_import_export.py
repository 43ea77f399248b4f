"""`butleradm ipam export` and `butleradm ipam import`, through the real executable."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from cli.estates import allocation_body, delete, make_allocation, make_pool, names, phase, read, release_by_hand

if TYPE_CHECKING:
    from pathlib import Path

    from cli.terminal import Cli
    from control_planes import ControlPlane

HEADER = "pool,tenant_namespace,tenant,type,start,end,count,phase,allocated_at,name"
SHORT = "tenant_namespace,tenant,type,start,end"


@pytest.fixture
def rack(plane: ControlPlane, network: str) -> str:
    return make_pool(plane, network)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def rows(file: Path, *lines: str, header: str = SHORT) -> str:
    file.write_text("\n".join([header, *lines, ""]))
    return str(file)


# Export.


def test_an_export_has_a_row_for_each_in_a_form_that_stays(
    adm: Cli, plane: ControlPlane, rack: str, network: str
) -> None:
    make_allocation(plane, allocation_body(f"{rack}-b", rack, "team/b", count=3))
    make_allocation(plane, allocation_body(f"{rack}-a", rack, "team/a", count=1))
    release_by_hand(plane, f"{rack}-a")
    head, row = adm("ipam", "export", "--pool", rack).splitlines()
    assert head == HEADER
    assert row.split(",")[:8] == [rack, "team", "b", "nodes", f"{network}.0.16", f"{network}.0.18", "3", "Allocated"]
    whole = json.loads(adm("ipam", "export", "--pool", rack, "--all", "-o", "json"))
    assert whole["format"] == "butler-allocations/v1"
    assert [(allocation["name"], allocation["phase"]) for allocation in whole["allocations"]] == [
        (f"{rack}-b", "Allocated"),
        (f"{rack}-a", "Released"),
    ]
    assert whole["allocations"][0]["allocatedAt"] == row.split(",")[8]
    assert yaml.safe_load(adm("ipam", "export", "--pool", rack, "--all", "-o", "yaml")) == whole


def test_an_export_of_nothing_is_a_header_and_a_word(adm: Cli, rack: str) -> None:
    said = adm.run("ipam", "export", "--pool", rack)
    assert (said.code, said.out) == (0, f"{HEADER}\n")
    assert (
        said.err
        == f"There are no allocations with addresses in pool {rack}; --all writes those that hold nothing, too.\n"
    )
    assert "there is no NetworkPool nope" in adm.refused(3, "ipam", "export", "--pool", "nope")


# Import.


def test_an_import_makes_what_is_missing_and_a_second_one_nothing(
    adm: Cli, plane: ControlPlane, rack: str, network: str, file: Path
) -> None:
    make_allocation(plane, allocation_body(f"{rack}-b", rack, "team/b", count=2))
    name = rack.replace("rack", "shop")
    given = rows(
        file,
        f"team,b,nodes,{network}.0.16,{network}.0.17",
        *(f"team,{name},nodes,{network}.0.{last}," for last in (40, 42, 41)),
        f"team,{name},loadbalancer,{network}.1.0,{network}.1.7",
    )
    dry = adm.run("ipam", "import", given, "--dry-run=client")
    assert dry.code == 0, str(dry)
    assert [line.split() for line in dry.out.splitlines()[1:3]] == [
        ["+", "line", "6", f"team/{name}", "loadbalancer", f"{network}.1.0-{network}.1.7", "8", rack, f"{name}-lb"],
        f"+ line 3 and 2 more team/{name} nodes {network}.0.40-{network}.0.42 3 {rack} {name}-nodes".split(),
    ]
    assert dry.out.splitlines()[3:] == ["= 1 range is there already", "2 would be made, 1 there already."]
    assert not phase(plane, f"{name}-lb")
    done = adm.run("ipam", "import", given, "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 made, 1 there already."), str(done)
    made = read(plane, "ipallocations", f"{name}-nodes")
    assert made["status"]["phase"] == "Allocated"
    assert made["spec"]["pinnedRange"] == {"startAddress": f"{network}.0.40", "endAddress": f"{network}.0.42"}
    before = names(plane)
    again = adm("ipam", "import", given)
    assert again.splitlines() == ["= 5 ranges are there already", "Nothing to do, 5 there already."]
    assert names(plane) == before


def test_two_hundred_rows_are_made_at_once(adm: Cli, rack: str, network: str, file: Path) -> None:
    lines = [f"team-{n % 7},r{rack[5:]}-{n},nodes,{network}.{1 + n // 50}.{n % 50 * 4}," for n in range(200)]
    given = rows(file, *lines)
    told = adm.json("ipam", "import", given, "--yes")
    assert told["summary"] == {
        "toMake": 200, "made": 200, "failed": 0, "there": 0, "conflicts": 0, "invalid": 0, "passedOver": 0,
    }  # fmt: skip
    assert {item["phase"] for item in told["items"]} == {"Allocated"}
    assert {item["tenant"] for item in told["items"]} == {f"team-{n % 7}/r{rack[5:]}-{n}" for n in range(200)}


def test_what_was_exported_can_be_imported_in_every_form(
    adm: Cli, plane: ControlPlane, rack: str, network: str, tmp_path: Path
) -> None:
    make_allocation(plane, allocation_body(f"{rack}-b", rack, "team/b", count=2))
    for form in ("csv", "json", "yaml"):
        text = adm("ipam", "export", "--pool", rack, "-o", form)
        said = adm("ipam", "import", "-", "--format", form, stdin=text)
        assert said.endswith("Nothing to do, 1 there already.\n")
    file = tmp_path / "all.csv"
    file.write_text(adm("ipam", "export", "--pool", rack))
    delete(plane, f"{rack}-b")
    adm("ipam", "import", str(file), "--yes")
    (row,) = csv.DictReader(adm("ipam", "export", "--pool", rack).splitlines())
    assert (row["name"], row["start"], row["tenant"]) == (f"{rack}-b", f"{network}.0.16", "b")


def test_a_conflict_names_who_and_keeps_everything_from_being_made(
    adm: Cli, plane: ControlPlane, rack: str, network: str, file: Path
) -> None:
    make_allocation(plane, allocation_body(f"{rack}-b", rack, "team/b", count=4))
    name = rack.replace("rack", "shop")
    given = rows(
        file,
        f"{rack},team,{name},nodes,{network}.0.18",
        f",team,{name},nodes,{network}.0.3",
        f",team,{name},nodes,{network}.0.0",
        f",team,{name},nodes,192.0.2.1",
        f"nope,team,{name},nodes,{network}.0.90",
        f",team,{name},nodes,{network}.15.250,{network}.16.5",
        f",team,{name},nodes,{network}.0.100",
        header="pool,tenant_namespace,tenant,type,start,end",
    )
    said = adm.run("ipam", "import", given, "--yes")
    assert said.code == 8, str(said)
    told = [line for line in said.out.splitlines() if line.startswith("!")]
    assert told[0] == (
        f"! line 2: {network}.0.18 is held by {rack}-b for nodes of team/b: correct the row, or release {rack}-b"
    )
    assert f"! line 3: {network}.0.3 is reserved by {network}.0.0/28 (switches): pin" in told[1]
    assert f"! line 4: it is outside what {rack} hands out" in told[2]
    assert "! line 5: 192.0.2.1 lies in no pool; the nearest is" in told[3]
    assert "! line 6: there is no NetworkPool nope" in told[4]
    assert f"reaches beyond pool {rack}: split it at the pool's edge" in told[5]
    assert said.error == (
        "6 conflicts; nothing was written: put right what has a !, or make only the others with --skip-conflicts"
    )
    assert not phase(plane, f"{name}-nodes")
    rest = adm.run("ipam", "import", given, "--yes", "--skip-conflicts")
    assert (rest.code, rest.out.splitlines()[-1]) == (0, "1 made, 0 there already, 6 left out."), str(rest)
    assert phase(plane, f"{name}-nodes") == "Allocated"


def test_rows_that_make_no_sense_are_told_with_their_lines(
    adm: Cli, plane: ControlPlane, rack: str, file: Path
) -> None:
    before = names(plane)
    given = rows(
        file,
        "t,web,nodes,10.0.0.300",
        "t,web,nodes,10.0.0.9,10.0.0.1",
        "t,web,nodes,10.0.0.0,10.1.0.0",
        "t,web,nodes,10.0.0.20",
        "t,web,nodes,10.0.0.20",
        "t,shop,nodes,10.0.0.20,10.0.0.21",
    )
    said = adm.run("ipam", "import", given, "--yes", "--skip-conflicts")
    assert said.code == 1, str(said)
    told = [line for line in said.out.splitlines() if line.startswith("?")]
    assert [line.partition(": ")[0] for line in told] == ["? line 2", "? line 3", "? line 4", "? line 6", "? line 7"]
    assert "comes before" in told[1]
    assert "asks for 65537 addresses, but one allocation may hold at most 65536" in told[2]
    assert "it says the same as line 5" in told[3]
    assert "10.0.0.20 is in line 5 too, as nodes of t/web" in told[4]
    assert said.error.startswith("5 rows cannot be understood")
    assert said.error.endswith("; nothing was written: mend what has a ?")
    assert names(plane) == before


FILES: list[tuple[str, bytes, str]] = [
    ("a.csv", b"", "it is empty"),
    ("a.csv", b"name,wat\n", "column 'wat' is not known"),
    ("a.csv", SHORT.encode(), "it has a header and no rows"),
    ("a.csv", bytes(range(256)) * 100, "is no UTF-8 text: save it as UTF-8"),
    ("a.csv", b"a\0b", "it has zero bytes"),
    ("a.csv", b"x" * 5_000_000, "it is larger than 4 MB: split it"),
    ("a.json", b"{", "it is no JSON"),
    ("a.json", b"[" * 200_000, "it is no JSON"),
    ("a.yaml", b"[" * 200_000, "goes deeper than 16 levels"),
    ("a.yaml", b"x: &a [1]\nallocations: [*a]", "has an alias"),
    ("a.yaml", b"a: {", "is no YAML"),
    ("a.yaml", b"banana", "it has no list of allocations"),
]


@pytest.mark.parametrize(("name", "content", "complaint"), FILES)
def test_a_file_that_is_none_is_refused_in_one_sentence(
    tmp_path: Path, adm: Cli, name: str, content: bytes, complaint: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert complaint in adm.refused(1, "ipam", "import", str(file), "--yes")


def test_a_command_line_that_makes_no_sense_is_refused(adm: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(SHORT)
    assert "say one of FILE" in adm.refused(2, "ipam", "import")
    assert "does not tell its format: say --format" in adm.refused(2, "ipam", "import", str(tmp_path / "rows"))
    assert "does not tell its format: say --format" in adm.refused(2, "ipam", "import", "-", stdin="x")
    assert "No such file" in adm.refused(3, "ipam", "import", str(tmp_path / "none.csv"))
    assert "--format is that of a FILE" in adm.refused(2, "ipam", "import", "--from-tenant", "a/b", "--format", "csv")
    assert "belong together" in adm.refused(2, "ipam", "import", "--from-kubeconfig", "x")


def test_an_import_asks_before_it_writes(adm: Cli, plane: ControlPlane, rack: str, network: str, file: Path) -> None:
    name = rack.replace("rack", "shop")
    given = rows(file, *(f"team,{name},nodes,{network}.0.{last}," for last in (40, 50)))
    piped = adm.run("ipam", "import", given)
    assert (piped.code, "Make 2 allocations for 1 tenant? There is no terminal to ask in" in piped.error) == (2, True)
    question = "Make 2 allocations for 1 tenant? [y/N]"
    declined = adm.in_terminal("ipam", "import", given, columns=60, answer={question: "n\n"})
    assert declined.code == 1, str(declined)
    assert all(len(click.unstyle(line)) <= 60 for line in declined.out.splitlines()), str(declined)
    assert not phase(plane, f"{name}-nodes")
    assert adm.run("ipam", "import", given, "--dry-run=server").out.endswith("2 would be made, 0 there already.\n")
    assert not phase(plane, f"{name}-nodes")
    agreed = adm.in_terminal("ipam", "import", given, answer={question: "y\n"})
    assert (agreed.code, "2 made, 0 there already." in agreed.out) == (0, True), str(agreed)


def test_who_may_not_is_told_so(adm: Cli, file: Path) -> None:
    given = rows(file, "t,web,nodes,10.0.0.3,")
    for command in (("export",), ("import", given, "--yes")):
        said: Any = adm.run("ipam", *command, "--as", "stranger")
        assert (said.code, said.out) == (4, ""), str(said)
