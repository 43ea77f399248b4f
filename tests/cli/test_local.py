"""`butleradm local status|down|reset`, from another terminal than the one it runs in."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from cli.terminal import Cli, eventually
from local_server import LocalServer

if TYPE_CHECKING:
    from pathlib import Path

adm = Cli(None)


def local(command: str, directory: Path, *more: str) -> tuple[str, ...]:
    return ("local", command, "--data-dir", str(directory), *more)


def test_a_life_from_start_to_reset(tmp_path: Path) -> None:
    with LocalServer(tmp_path) as server:
        up = adm.run(*local("status", server.data_dir))
        assert up.code == 0, str(up)
        told = dict(line.split(":", 1) for line in up.out.splitlines())
        assert told["State"].strip() == "up"
        assert told["Process"].strip() == str(server.pid)
        assert told["API server"].strip() == server.url
        assert told["Controllers"].strip() == "none, or not ready yet"
        assert told["Inside"].strip() == "0 pools, 0 allocations, 0 providers, 0 tenant clusters"
        said = json.loads(adm(*local("status", server.data_dir), "-o", "json"))
        assert (said["state"], said["pid"], said["server"]) == ("up", server.pid, server.url)
        assert said["objects"]["networkpools"] == 0
        assert said["bytes"] > 0
        assert "it runs (process" in adm.refused(6, *local("reset", server.data_dir, "--yes"))

        down = adm(*local("down", server.data_dir))
        assert down == f"Stopped (process {server.pid}). The data stays in {server.data_dir}.\n"
        assert server._process is not None
        assert server._process.wait(10) == 0, "as by Ctrl-C"

    stopped = adm.run(*local("status", server.data_dir))
    assert stopped.code == 3
    assert "down" in stopped.out
    assert stopped.err == "`butleradm local up` starts it, with the same --data-dir if it has one.\n"
    again = adm.run(*local("down", server.data_dir))
    assert (again.code, again.err) == (0, f"Nothing runs on {server.data_dir}.\n")

    assert "There is no terminal to ask in: say --yes" in adm.refused(2, *local("reset", server.data_dir))
    no = adm.in_terminal(*local("reset", server.data_dir), answer={"[y/N]": "n\n"})
    assert (no.code, server.data_dir.exists()) == (1, True)
    yes = adm.in_terminal(*local("reset", server.data_dir), answer={"[y/N]": "y\n"})
    assert (yes.code, server.data_dir.exists()) == (0, False), str(yes)
    assert adm.run(*local("status", server.data_dir)).code == 3


def test_a_server_that_was_killed_is_down_and_can_be_reset(tmp_path: Path) -> None:
    with LocalServer(tmp_path) as server:
        server.kill()
        assert adm.run(*local("status", server.data_dir)).code == 3
        assert "Deleted" in adm(*local("reset", server.data_dir, "--yes"))
    assert not server.data_dir.exists()


def test_a_server_that_hangs_is_told_apart_and_waited_for_in_vain(tmp_path: Path) -> None:
    with LocalServer(tmp_path) as server:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            hangs = adm.run(*local("status", server.data_dir))
            assert (hangs.code, "not answering" in hangs.out) == (5, True), str(hangs)
            error = adm.refused(7, *local("down", server.data_dir, "--timeout", "0.2"))
            assert error.startswith(f"process {server.pid} has not stopped within 0.2 s")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        eventually(lambda: adm.run(*local("status", server.data_dir)).code == 3, "it stops when it can")


def test_the_environment_names_the_directory_too(tmp_path: Path) -> None:
    said = adm.run("local", "status", BUTLER_DATA_DIR=str(tmp_path / "play"))
    assert str(tmp_path / "play") in said.out
    assert "nothing there" in said.out


def test_a_directory_under_a_file_is_nothing_and_one_that_cannot_be_named_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    under = adm.run(*local("status", tmp_path / "file" / "play"))
    assert (under.code, "nothing there" in under.out) == (3, True), str(under)
    assert "Nothing runs on" in adm.run(*local("down", tmp_path / "file" / "play")).err
    assert "there is no directory" in adm.refused(3, *local("reset", tmp_path / "file" / "play", "--yes"))
    for command in ("status", "down"):
        assert "cannot be looked into (File name too long)" in adm.refused(1, *local(command, tmp_path / ("x" * 300)))


@pytest.mark.parametrize(
    "story", ["empty", "foreign files", "another database", "foreign files beside ours", "not there"]
)
def test_a_folder_that_is_not_a_data_directory_is_never_deleted(tmp_path: Path, story: str) -> None:
    folder = tmp_path / "folder"
    code = 1
    if story == "not there":
        code = 3
    else:
        folder.mkdir()
    if story == "foreign files":
        (folder / "thesis.txt").write_text("years of work")
        (folder / "store.db").write_text("not a database")
    elif story == "another database":
        with closing(sqlite3.connect(folder / "store.db")) as database:
            database.execute("CREATE TABLE photos (name TEXT)")
    elif story == "foreign files beside ours":
        with closing(sqlite3.connect(folder / "store.db")) as database:
            database.execute(f"PRAGMA application_id = {0x42544C52}")
        (folder / "thesis.txt").write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    error = adm.refused(code, *local("reset", folder, "--yes"))
    assert error.endswith("nothing was deleted")
    assert sorted(tmp_path.rglob("*")) == before
    assert adm.run(*local("status", folder)).code == 3
    assert adm.run(*local("down", folder)).code == 0
