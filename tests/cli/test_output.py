"""Every way of showing a list, once, through the real executable: all lists are shown by the same code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest
import yaml

from cli.terminal import eventually

if TYPE_CHECKING:
    from cli.terminal import Cli
    from control_planes import ControlPlane


@pytest.fixture(scope="module", autouse=True)
def two_pools(plane: ControlPlane, adm: Cli) -> None:
    for name, cidr in (("east", "10.201.0.0/24"), ("a-pool-with-a-rather-long-name", "10.202.0.0/16")):
        meta = {"name": name, "namespace": "butler-system", "labels": {"site": name[:4]}}
        body = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "NetworkPool", "metadata": meta}
        plane.kubectl("apply", "-f", "-", stdin=json.dumps({**body, "spec": {"cidr": cidr}}))
    eventually(lambda: adm("pool", "list").count("Ready") == 2, "both pools are ready")


def test_a_table_has_a_row_for_each(adm: Cli) -> None:
    head, first, second = adm("pool", "list").splitlines()
    assert head.split() == ["NAME", "CIDR", "USE", "ALLOCATED", "AVAILABLE", "TOTAL", "LARGEST", "STATE", "AGE"]
    assert first.split()[2:-1] == ["0%", "0", "65534", "65534", "65534", "Ready"]
    assert second.split()[:2] == ["east", "10.201.0.0/24"]


def test_wide_has_more_columns_and_no_headers_has_no_titles(adm: Cli) -> None:
    assert "FRAGMENTED" in adm("pool", "list", "-o", "wide")
    assert "NAME" not in adm("pool", "list", "--no-headers")


def test_json_and_yaml_are_the_servers_own_objects_in_a_list(adm: Cli, plane: ControlPlane) -> None:
    theirs = json.loads(plane.kubectl("get", "networkpools", "-n", "butler-system", "-o", "json").stdout)
    ours = adm.json("pool", "list")
    assert (ours["kind"], ours["apiVersion"]) == (theirs["kind"], theirs["apiVersion"])
    strip = [{**item, "metadata": {**item["metadata"], "managedFields": None}} for item in theirs["items"]]
    assert [{**item, "metadata": {**item["metadata"], "managedFields": None}} for item in ours["items"]] == strip
    assert yaml.safe_load(adm("pool", "list", "-o", "yaml")) == ours


def test_names_csv_and_templates_are_for_programs(adm: Cli) -> None:
    assert adm("pool", "list", "-o", "name", "-l", "site=east") == "networkpool.butler.butlerlabs.dev/east\n"
    head, _, row = adm("pool", "list", "-o", "csv").splitlines()
    assert head.startswith("name,cidr,use_percent,allocated,available,total,largest,fragmentation_percent,"), head
    assert row.startswith("east,10.201.0.0/24,0,0,254,254,254,0,0,Ready,20"), "numbers and times, no words"
    assert row.endswith("Z")
    template = '{range .items[*]}{.metadata.name}{"\\t"}{.spec.cidr}{"\\n"}{end}'
    assert adm("pool", "list", "-o", f"jsonpath={template}").splitlines()[1] == "east\t10.201.0.0/24"
    columns = adm("pool", "list", "-o", "custom-columns=POOL:.metadata.name,NONE:.spec.nothing")
    assert columns.splitlines()[2].split() == ["east", "<none>"]
    nothing = ("pool", "list", "-n", "nowhere", "-o", "custom-columns=POOL:.metadata.name")
    assert (adm(*nothing), adm(*nothing, "--no-headers")) == ("POOL\n", "")


@pytest.mark.parametrize(
    ("format_", "complaint"),
    [
        ("xml", "'xml' is not one of table, wide, json, yaml, name, csv, jsonpath=, custom-columns="),
        ("jsonpath", "jsonpath needs a template, as in -o jsonpath='{.items[*].metadata.name}'"),
        ("jsonpath={.a[}", "unterminated array"),
        ("jsonpath={range .items}x", "{range} without {end}"),
        ("custom-columns=NAME", "'NAME' is no column: write TITLE:.path.to.field, with commas in between"),
    ],
)
def test_a_format_that_makes_no_sense_is_a_mistake_of_the_command_line(adm: Cli, format_: str, complaint: str) -> None:
    assert complaint in adm.refused(2, "pool", "list", "-o", format_)


def test_a_terminal_that_is_too_narrow_shortens_the_longest_cells_and_a_pipe_none(adm: Cli) -> None:
    narrow = adm.in_terminal("pool", "list", columns=50)
    assert narrow.code == 0, str(narrow)
    assert all(len(click.unstyle(line)) <= 50 for line in narrow.out.splitlines()), str(narrow)
    assert "STATE" in narrow.out, "what matters most stays"
    assert "…" in narrow.out
    assert "a-pool-with-a-rather-long-name" in adm("pool", "list", COLUMNS="40")


def test_colour_is_for_terminals_that_want_it(adm: Cli) -> None:
    assert "\x1b[" in adm.in_terminal("pool", "list").out
    assert "\x1b[" not in adm.in_terminal("pool", "list", NO_COLOR="1").out
    assert "\x1b[" not in adm.in_terminal("pool", "list", TERM="dumb").out
    assert "\x1b[" not in adm("pool", "list")


def test_a_watch_shows_each_change_until_ctrl_c(adm: Cli, plane: ControlPlane) -> None:
    def seen(text: str) -> bool:
        if "east" in text and "more" not in done:
            done.append("more")
            plane.kubectl("label", "networkpool", "east", "-n", "butler-system", "more=yes", "--overwrite")
        return text.count("east") >= 2

    done: list[str] = []
    said = adm.in_terminal("pool", "list", "--watch", until=seen)
    assert said.code == 130, str(said)
    assert said.out.count("NAME") == 1


@pytest.mark.parametrize("name", ["a/b", "..", ""])
def test_what_cannot_be_a_name_asks_no_server(adm: Cli, name: str) -> None:
    for command in (("pool", "get"), ("pool", "edit"), ("allocation", "get")):
        assert "give a name alone, and its namespace with -n" in adm.refused(2, *command, name)


def test_options_that_say_where_may_stand_before_the_command_as_with_kubectl(adm: Cli) -> None:
    here = adm("pool", "list", "-o", "name")
    for where in (["-n", "butler-system"], ["-nbutler-system"], ["--namespace=butler-system", "--context", "butler"]):
        assert adm(*where, "pool", "list", "-o", "name") == here
    assert adm("-A", "pool", "list", "--no-headers").startswith("butler-system ")
    assert "there is no NetworkPool east in namespace default" in adm.refused(3, "-n", "default", "pool", "get", "east")
    assert "No such option '-n'" in adm.refused(2, "-n", "default"), "of what?"
    assert "No such option '-n'" in adm.refused(2, "-n", "default", "crds"), "a command that has none"
    assert "No such option '-o'" in adm.refused(2, "-o", "json", "pool", "list"), "only where, not how"


def test_what_is_in_another_namespace_is_found_there(adm: Cli) -> None:
    missing = adm.refused(3, "pool", "get", "east", "-n", "default")
    assert missing.endswith("there is one in butler-system: say -n butler-system")
