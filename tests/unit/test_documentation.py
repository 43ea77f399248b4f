"""What the pages say is there: links, files, make targets, commands and their options, examples of every kind."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import msgspec
import pytest
import yaml
from write_version import CHART, with_version

from butler import __version__
from butler.api.kinds import KINDS
from butler.cli.reference import PROGRAMS
from pages import PAGES, ROOT, code, links, steps

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
EXAMPLES = sorted((ROOT / "examples").glob("**/*.yaml"))
FOLDERS = ("charts/", "docs/", "examples/", "src/", "tests/", "tools/")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    inside = [link.partition("#")[0] for link in links(page) if "://" not in link]
    assert [link for link in inside if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    words = [word for piece in code(page) for word in piece.split() if word.startswith(FOLDERS)]
    assert [word for word in words if not (ROOT / word).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    named = {target for piece in code(page) for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", piece, re.MULTILINE)}
    assert named <= TARGETS


def test_every_make_target_for_people_says_what_it_does() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == TARGETS
    explained = set(re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE))
    assert TARGETS - explained == {"setup-test"}


def _calls(line: str) -> list[list[str]]:
    """The calls of our programs inside a line that may hold loops, pipes and redirections."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    calls: list[list[str]] = [[]]
    after = ""
    for word in words:
        if set(word) <= set("|;&<>()"):
            if calls[-1][-1:] == ["2"] and word.startswith(">"):
                calls[-1].pop()  # where errors go
            if not word.startswith(">"):
                calls.append([])
        elif not after.startswith(">"):
            calls[-1].append(word)
        after = word
    starts = ((call, [place for place, word in enumerate(call) if Path(word).name in PROGRAMS]) for call in calls)
    return [[Path(call[found[0]]).name, *call[found[0] + 1 :]] for call, found in starts if found]


def _found(words: list[str], command: click.Command) -> click.Command:
    """The command that words call; takes these words away."""
    while isinstance(command, click.Group):
        inside = command.get_command(click.Context(command), words[0]) if words else None
        assert inside is not None, f"{command.name} has no command {words[:1]}"
        words.pop(0)
        command = inside
    return command


def test_every_command_of_ours_that_is_shown_is_understood() -> None:
    shown = [step.command for page in PAGES for step in steps(page)]
    calls = [call for line in shown for call in _calls(line)]
    assert len(calls) > 20
    for program, *words in calls:
        command = _found(words, PROGRAMS[program])
        command.make_context(program, words).close()  # raises a UsageError for what it does not know


def test_the_options_in_the_page_are_those_of_the_command() -> None:
    written = set(re.findall(r"^\| `(--[a-z-]+)", (ROOT / "docs/local.md").read_text(), re.MULTILINE))
    up = _found(["local", "up"], PROGRAMS["butleradm"])
    assert written == {option for parameter in up.params for option in parameter.opts if option.startswith("--")}


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_fits_its_type(path: Path) -> None:
    kinds = {kind.__name__: kind for kind in KINDS}
    for document in yaml.safe_load_all(path.read_text()):
        if document["kind"] in kinds:
            msgspec.convert(document, kinds[document["kind"]])
        else:
            assert document["kind"] in ("Namespace", "Secret") or path.parent.name == "console"  # rights


def test_there_is_an_example_of_every_kind_and_all_are_listed() -> None:
    documents = [document for path in EXAMPLES for document in yaml.safe_load_all(path.read_text())]
    assert {document["kind"] for document in documents} >= {kind.__name__ for kind in KINDS}
    page = (ROOT / "examples/README.md").read_text()
    tops = {path.relative_to(ROOT / "examples").parts[0] for path in EXAMPLES}
    assert {top for top in tops if f"`{top}`" not in page and f"`{top}/`" not in page} == set()


def test_one_version_stands_in_one_place_and_what_repeats_it_is_current() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "butler.__version__"}
    assert "version" not in json.loads((ROOT / "console/package.json").read_text())
    assert CHART.read_text() == with_version(CHART.read_text(), __version__), "`make generate` writes it anew"
    shown = {found for page in PAGES for found in re.findall(r"Butler (\d+\.\d+\.\d+) is up", page.read_text())}
    assert shown == {__version__}


def test_the_chart_gets_both_versions() -> None:
    assert with_version("name: a\nversion: 1\nappVersion: 1\nkubeVersion: 2\n", "0.9.0") == (
        "name: a\nversion: 0.9.0\nappVersion: 0.9.0\nkubeVersion: 2\n"
    )


MODULE = re.compile(r"(?<![\w./-])[a-z_]+(?:\.[a-z_]+)+")
TOPS = {
    source: {path.stem for path in (ROOT / source).iterdir()} for source in ("src/butler", "kubeserver/src/kubeserver")
}


def _is_there(module: str) -> bool:
    path = module.replace(".", "/")
    return any((ROOT / top / f"{path}.py").exists() or (ROOT / top / path).is_dir() for top in TOPS)


def test_the_architecture_names_only_modules_that_exist() -> None:
    words = re.findall(r"`([^`\n]+)`", (ROOT / "docs/architecture.md").read_text())
    tops = set().union(*TOPS.values())
    named = {
        word
        for word in words
        if MODULE.fullmatch(word) and word.partition(".")[0] in tops and word.partition(".")[2] != "py"
    }
    assert len(named) > 100
    assert sorted(module for module in named if not _is_there(module)) == []
