"""Every command of both programs over an estate whose every free text wants to steer the terminal: none gets there.

In a terminal, with and without colours, and in a pipe; as tables, screens, every format of `-o`, errors and questions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from butler.api.printable import in_json, one_line, visible
from butler.cli.toolkit.output import csv_text
from butler.cli.toolkit.streams import cleaned
from butler.cli.toolkit.yaml_writer import dumped
from cli.estates import RACK, make_small_estate
from cli.every import ALONE, CALLS, PROVIDER, covers_all, every, kubeconfig_for, words
from cli.hostile import OURS, POISON, RAW, lying
from cli.screens import SCREENS, WEB
from cli.terminal import Cli, Said

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import click

    from local_server import LocalServer

CHANGES = {
    "butleradm pool create": "another --cidr 10.78.0.0/24 --dry-run=server",
    "butleradm pool edit": f"{RACK} --dry-run=server",
    "butleradm pool grow": f"{RACK} --window 10.77.0.16-10.77.9.9 --yes --dry-run=server",
    "butleradm pool delete": f"{RACK} --yes --dry-run=server",
    "butleradm allocation create": f"more --pool {RACK} --tenant t/x --type nodes --count 1 --dry-run=server",
    "butleradm allocation pin": f"more --pool {RACK} --tenant t/x --type nodes --range 10.77.8.1 --dry-run=server",
    "butleradm allocation release": "shop-nodes --yes --dry-run=server",
    "butleradm ipam export": "--all",
    "butleradm provider create": "-f {provider} --dry-run=server",
    "butleradm server link": "",
    "butleradm server password": "--login admin",
    "butlerctl cluster create": "x -n team-platform --kubernetes-version v1.33.2 --dry-run=server",
    "butlerctl cluster scale": f"{WEB} --workers 3 --dry-run=server",
    "butlerctl cluster upgrade": f"{WEB} --version v1.34.1 --dry-run=server",
    "butlerctl cluster kubeconfig": WEB,
}
RUNNING = ("butleradm local up", "butleradm local world", "butleradm controller run", "butleradm server run")
"""They print a log, through the same exit; see below."""
SILENT = (
    "butleradm local down",
    "butleradm local reset",
    "butleradm crds",
    "butleradm completion",
    "butlerctl completion",
    "butlerctl context use",
    "butlerctl context namespace",
)
"""They read nothing that others wrote."""
ASKED = {**{call: screen.arguments for call, screen in SCREENS.items()}, **CHANGES}
OUTPUTS = ("wide", "json", "yaml", "csv", "name", "jsonpath={.}", "custom-columns=A:.metadata,B:.status,C:.message")


EVERY_DAY = ("butleradm pool list", "butleradm allocation get", "butlerctl cluster events")
"""Tried with every format of `-o` each time; the others by `make test-server`."""
FAILS = {
    "butleradm ipam fsck": (8,),
    "butleradm provider validate": (8,),
    "butleradm doctor": (0, 8),
    "butleradm pool grow": (1,),
    "butleradm pool delete": (1,),
    "butleradm server link": (3,),
}
"""What these come to on that estate."""


def test_no_command_is_forgotten() -> None:
    covers_all(ASKED, RUNNING, SILENT)
    assert set(CALLS) <= set(ASKED)
    assert set(ALONE) - set(RUNNING) - set(SILENT) <= set(ASKED)


@pytest.fixture(scope="module")
def hostile(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a proxy that lies."""
    make_small_estate(server.plane, server.data_dir)
    folder = tmp_path_factory.mktemp("hostile")
    with lying(server.plane) as url:
        yield kubeconfig_for(url, folder / "kubeconfig")


@pytest.fixture(scope="module")
def places(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    rows = folder / "rows.csv"
    rows.write_text(f"pool,tenant_namespace,tenant,type,start,end\n{RACK},team-old,legacy,nodes,10.77.3.1,10.77.3.4\n")
    provider = folder / "provider.yaml"
    provider.write_text(yaml.safe_dump(PROVIDER))
    return {"rows": rows, "data": server.data_dir, "provider": provider}


def clean(said: Said) -> None:
    for stream in (said.out, said.err):
        found = RAW.search(OURS.sub("", stream))
        assert found is None, (said.command, stream[max(0, found.start() - 60) : found.end() + 20])
    assert "Traceback" not in said.err, str(said)
    assert "defect of Butler" not in said.err, str(said)


@pytest.mark.parametrize("call", ASKED)
def test_nothing_that_a_terminal_obeys_is_printed(call: str, hostile: Path, places: dict[str, Path]) -> None:
    program, typed = words(call, ASKED[call], **places)
    cli = Cli(hostile, program, EDITOR="true")
    for said in (cli.run(*typed), cli.in_terminal(*typed, columns=80, talk_apart=True)):
        clean(said)
        assert said.code in FAILS.get(call, (0,)), str(said)


def _formats(command: click.Command) -> list[str]:
    for option in command.params:
        if "-o" in option.opts:
            return [output for output in OUTPUTS if output.partition("=")[0] in str(vars(option.type))]
    return []


@pytest.mark.parametrize(
    "call",
    [
        call if call in EVERY_DAY else pytest.param(call, marks=pytest.mark.slow)
        for call, command in every().items()
        if call in ASKED and _formats(command)
    ],
)
def test_nothing_of_it_is_printed_in_any_format(call: str, hostile: Path, places: dict[str, Path]) -> None:
    program, typed = words(call, ASKED[call], **places)
    for output in _formats(every()[call]):
        said = Cli(hostile, program, EDITOR="true").run(*typed, "-o", output)
        clean(said)
        if said.out and output == "json":
            json.loads(said.out)
        elif said.out and output == "yaml":
            list(yaml.safe_load_all(said.out))


def test_what_is_escaped_means_the_same(hostile: Path) -> None:
    adm = Cli(hostile)
    pools = json.loads(adm("pool", "list", "-o", "json"))
    again = yaml.safe_load(adm("pool", "list", "-o", "yaml"))
    for found in (pools, again):
        [block] = [item["spec"]["reserved"][0] for item in found["items"] if item["metadata"]["name"] == RACK]
        assert block["description"] == f"switches{POISON}"


def test_errors_and_questions_are_clean(hostile: Path) -> None:
    adm = Cli(hostile)
    clean(adm.run("pool", "get", f"x{POISON}".replace("\x00", "")))
    clean(adm.run("pool", "list", "--as", "stranger"))
    clean(adm.run(f"nonsense{POISON}"))
    clean(adm.run("allocation", "get", "missing"))
    asked = adm.in_terminal("pool", "delete", RACK, answer={"Type": "no\n"})
    clean(Said(asked.command, asked.code, asked.out))


def test_a_watch_is_clean(hostile: Path) -> None:
    for typed in (("pool", "list", "-w"), ("allocation", "list", "-w")):
        said = Cli(hostile).in_terminal(*typed, until=lambda seen: RACK in seen, NO_COLOR="1")
        assert RACK in said.out
        clean(Said(said.command, said.code, said.out.replace("^C", "")))


LOGGING = """
import logging, sys
from butler.cli.toolkit import streams
streams.install()
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
logging.getLogger("x").warning("%s", sys.argv[1])
print(sys.argv[1])
print(streams.own("\\x1b[1m") + "ours" + streams.own("\\x1b[0m"))
print("\\U000f0000\\U000f0001\\U000f0002" + "\\x1b[1m")
raise RuntimeError(sys.argv[1])
"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_logs_and_tracebacks_leave_by_the_same_exit(encoding: str) -> None:
    poison = POISON.encode(encoding, "ignore").decode(encoding)
    done = subprocess.run(
        [sys.executable, "-c", LOGGING, poison],
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
    )
    out, err = done.stdout.decode("latin-1"), done.stderr.decode("latin-1")
    assert out.count("\x1b") == 2, "ours alone"
    assert not set(out.replace("\x1b[1mours\x1b[0m", "") + err) & {"\x1b", "\x07", "\r", "\x7f", "\x08"}
    assert "RuntimeError" in err


def test_what_is_shown_of_it() -> None:
    assert visible("a\x1b[31m\tb\r\nc\rd") == "a\\x1b[31m\tb\nc\\rd"
    assert visible("\x9b\u202e\U000e0041\ud800") == "\\x9b\\u202e\\U000e0041\\ud800"
    assert visible("Grüße, 日本, \u200d👩") == "Grüße, 日本, \u200d👩"
    assert one_line("a\nb\tc", 6) == "a\\nb\\…"
    assert json.loads(in_json('{"a": "\x9b\U000e0041"}')) == {"a": "\x9b\U000e0041"}
    assert yaml.safe_load(dumped({"a": "\u202e\x85ü"})) == {"a": "\u202e\x85ü"}
    assert dumped({"a": "ü"}) == "a: ü\n"
    assert cleaned("\x1b[1mM\x1b[1mx\x1b", "M") == "\\x1b[1m\x1b[1mx\\x1b"


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_csv_is_a_formula(cell: str) -> None:
    written = csv_text(["a"], [[cell]]).splitlines()[1]
    assert written.lstrip('"').startswith("'"), written
    assert csv_text(["a"], [["-"], [-5]]) == "a\n-\n-5\n"
