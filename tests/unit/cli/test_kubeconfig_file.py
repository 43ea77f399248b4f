"""Kubeconfig files, read and edited as kubectl does it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from butler.cli.toolkit.kubeconfig_file import KubeconfigFiles, files, write_private
from butler.cli.toolkit.session import Failure

MINE = """\
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- {name: one, cluster: {server: "https://one.example.com"}}
users:
- name: me
  user: {token: 0123, since: 2024-01-01, flag: yes}
contexts:
- name: work
  context: {cluster: one, user: me}
- name: play
  context: {cluster: gone, user: me, namespace: garden}
current-context: work
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(MINE)
    path.chmod(0o640)
    return path


def plain(path: Path) -> object:
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def test_contexts_are_listed_with_what_they_lead_to(mine: Path) -> None:
    found = KubeconfigFiles([mine]).contexts()
    assert [(context.name, context.server, context.namespace, context.current) for context in found] == [
        ("play", "", "garden", False),
        ("work", "https://one.example.com", "default", True),
    ]


def test_an_edit_changes_what_was_asked_for_and_keeps_every_other_value_as_it_was_written(mine: Path) -> None:
    before = plain(mine)
    assert KubeconfigFiles([mine]).use("play") == mine
    after = plain(mine)
    assert after == {**before, "current-context": "play"}  # type: ignore[dict-item]
    assert stat.S_IMODE(mine.stat().st_mode) == 0o640
    assert [path.name for path in mine.parent.iterdir()] == ["config"], "no lock and no scratch file stays"


def test_the_namespace_of_a_context_is_set_where_it_stands(mine: Path) -> None:
    found = {context.name: context for context in KubeconfigFiles([mine]).contexts()}
    KubeconfigFiles([mine]).set_namespace(found["work"], "team-a")
    KubeconfigFiles([mine]).set_namespace(found["play"], "team-b")
    assert [(context.name, context.namespace) for context in KubeconfigFiles([mine]).contexts()] == [
        ("play", "team-b"),
        ("work", "team-a"),
    ]


def test_of_several_files_the_first_wins_and_an_entry_is_edited_where_it_stands(mine: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("contexts:\n- name: theirs\n  context: {cluster: one}\ncurrent-context: theirs\n")
    both = KubeconfigFiles([tmp_path / "missing", other, mine])
    assert both.current == "theirs"
    theirs = next(context for context in both.contexts() if context.name == "theirs")
    assert theirs.server == "https://one.example.com", "the cluster stands in the other file"
    work = next(context for context in both.contexts() if context.name == "work")
    assert both.set_namespace(work, "x") == mine
    assert both.use("work") == other


def test_a_new_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "config"
    KubeconfigFiles([path]).merge("web", {"server": "https://w"}, {"token": "007"}, use=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text())["users"] == [{"name": "web", "user": {"token": "007"}}]
    assert KubeconfigFiles([path]).current == "web"


def test_merging_again_renews_and_keeps_the_namespace_that_was_chosen(mine: Path) -> None:
    for token in ("old", "new"):
        KubeconfigFiles([mine]).merge("web", {"server": "https://w"}, {"token": token}, use=False)
        web = next(context for context in KubeconfigFiles([mine]).contexts() if context.name == "web")
        KubeconfigFiles([mine]).set_namespace(web, "shop")
    whole = yaml.safe_load(mine.read_text())
    assert [user["user"] for user in whole["users"] if user["name"] == "web"] == [{"token": "new"}]
    assert [context["context"] for context in whole["contexts"] if context["name"] == "web"] == [
        {"cluster": "web", "user": "web", "namespace": "shop"}
    ]
    assert whole["current-context"] == "work"
    assert KubeconfigFiles([mine]).servers_of("web") == {"https://w"}


@pytest.mark.parametrize(
    ("name", "server", "why"),
    [
        ("web", "https://w", ""),
        ("work", "https://one.example.com", ""),
        ("work", "https://w", "a context or cluster work already, for https://one.example.com"),
        ("one", "https://w", "a context or cluster one already, for https://one.example.com"),
        ("one", "https://one.example.com", "a cluster one already, which is used by context work"),
        ("me", "https://w", "a user me already, which is used by context play and work"),
        ("idle", "https://w", "a user idle already, and nothing says that its credentials are for https://w"),
        ("left", "https://w", ""),
    ],
)
def test_an_entry_of_another_owner_is_in_the_way_of_a_merge(mine: Path, name: str, server: str, why: str) -> None:
    whole = yaml.safe_load(MINE)
    whole["users"] += [{"name": "idle", "user": {"token": "a"}}, {"name": "left", "user": {"token": "b"}}]
    whole["clusters"].append({"name": "left", "cluster": {"server": "https://w"}})  # of a context that was deleted
    mine.write_text(yaml.safe_dump(whole))
    assert KubeconfigFiles([mine]).in_the_way(name, server) == why


@pytest.mark.parametrize("empty", ["", "clusters: []\ncontexts: null\n", "{}"])
def test_a_file_with_nothing_in_it_is_as_good_as_any(tmp_path: Path, empty: str) -> None:
    path = tmp_path / "config"
    path.write_text(empty)
    KubeconfigFiles([path]).merge("web", {"server": "https://w"}, {}, use=True)
    assert [context.name for context in KubeconfigFiles([path]).contexts()] == ["web"]


def test_a_link_stays_a_link(mine: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(mine)
    KubeconfigFiles([link]).use("play")
    assert link.is_symlink()
    assert KubeconfigFiles([mine]).current == "play"


@pytest.mark.parametrize(("text", "why"), [("[1, 2]", "is not a kubeconfig"), ("a: [", "is not YAML")])
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(Failure, match=why):
        KubeconfigFiles([path])


def test_a_file_that_another_process_is_editing_is_left_alone(mine: Path) -> None:
    lock = mine.with_name("config.lock")
    lock.touch()
    with pytest.raises(Failure, match="another process is editing"):
        KubeconfigFiles([mine]).use("play")
    assert mine.read_text() == MINE
    assert lock.exists()


def test_which_files_count(tmp_path: Path) -> None:
    assert files("x") == [Path("x")]
    assert files(None, {"KUBECONFIG": "a:b:"}) == [Path("a"), Path("b")]
    assert files(None, {"HOME": str(tmp_path)}) == [tmp_path / ".kube" / "config"]


def test_a_private_file_is_for_its_owner_alone_whatever_was_there(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
