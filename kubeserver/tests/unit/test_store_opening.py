"""What a store does with the directory it is given: opens, refuses, closes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from kubeserver.storage.store import (
    Compacted,
    StorageFailed,
    Store,
    StoreRefused,
)

if TYPE_CHECKING:
    from pathlib import Path

from unit.stores import PODS, pod, value


async def test_a_store_reopens_with_what_it_had(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "deep" / "data")
    for name in "ab":
        await store.create(pod(name), value(name=name))
    entry = store.get(pod("a"))
    assert entry is not None
    await store.update(pod("a"), entry.revision, value(name="changed"))
    before, revision = store.entries(PODS), store.revision
    await store.close()
    await store.close()
    store = await Store.open(tmp_path / "deep" / "data")
    assert store.entries(PODS) == before
    assert store.revision == revision, "a clean restart skips no revisions"
    await store.close()


async def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = await Store.open(tmp_path / "data")
        await store.create(pod("a"), value())
        for file in (tmp_path / "data").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        await store.close()
    finally:
        os.umask(old)


async def test_a_directory_in_use_is_refused_with_the_owner(tmp_path: Path, store: Store) -> None:
    with pytest.raises(StoreRefused, match=rf"in use by another process \(pid {os.getpid()}\)"):
        await Store.open(tmp_path)
    await store.create(pod("a"), value())


async def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("a shopping list" * 100)
    with pytest.raises(StoreRefused, match="not a database"):
        await Store.open(tmp_path)
    assert (tmp_path / "store.db").read_text().startswith("a shopping list")
    (tmp_path / "store.db").unlink()
    other = sqlite3.connect(tmp_path / "store.db")
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(StoreRefused, match="not a file of this API server"):
        await Store.open(tmp_path)


async def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    await (await Store.open(tmp_path)).close()
    file = sqlite3.connect(tmp_path / "store.db")
    file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreRefused, match="newer version"):
        await Store.open(tmp_path)


async def test_a_damaged_value_is_refused_and_not_served(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.create(pod("a"), value(note="the original text"))
    await store.close()
    content = (tmp_path / "store.db").read_bytes()
    assert b"the original text" in content
    (tmp_path / "store.db").write_bytes(content.replace(b"the original text", b"the 0riginal text"))
    with pytest.raises(StoreRefused, match="damaged: revision 2 does not match"):
        await Store.open(tmp_path)
    (tmp_path / "store.db").write_bytes(content)
    store = await Store.open(tmp_path)
    assert store.count(PODS) == 1
    await store.close()


async def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await asyncio.gather(*(store.create(pod(f"p{n}"), value(pad="x" * 2000)) for n in range(200)))
    await store.close()
    content = (tmp_path / "store.db").read_bytes()
    (tmp_path / "store.db").write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreRefused, match="damaged"):
        await Store.open(tmp_path)


async def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreRefused, match="cannot be used"):
        await Store.open(tmp_path / "file")


async def test_a_store_without_its_tables_is_refused(tmp_path: Path) -> None:
    await (await Store.open(tmp_path)).close()
    file = sqlite3.connect(tmp_path / "store.db")
    file.execute("DROP TABLE log")
    file.close()
    with pytest.raises(StoreRefused, match="damaged: no such table"):
        await Store.open(tmp_path)
    with pytest.raises(StoreRefused, match="damaged"):  # and the lock was released
        await Store.open(tmp_path)


async def test_a_closed_store_takes_no_writes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    pending = store.create(pod("a"), value())
    await store.close()
    assert (await pending).revision == 2, "what was submitted before is written"
    with pytest.raises(StorageFailed, match="closed"):
        store.create(pod("b"), value())


async def test_a_copy_that_was_put_back_does_not_answer_for_revisions_that_it_never_had(tmp_path: Path) -> None:
    """A client that resumes a watch from one of them would miss changes, so it has to list again."""
    store = await Store.open(tmp_path / "data")
    first = await store.create(pod("a"), value())
    with closing(sqlite3.connect(tmp_path / "data" / "store.db")) as live:
        (tmp_path / "copy").mkdir(mode=0o700)
        with closing(sqlite3.connect(tmp_path / "copy" / "store.db")) as copy:
            live.backup(copy)
    lost = await store.create(pod("b"), value())
    await store.close()
    store = await Store.open(tmp_path / "copy")
    assert store.revision > lost.revision
    store.watch(PODS, since=first.revision).close()
    with pytest.raises(Compacted):
        store.watch(PODS, since=lost.revision)
    await store.close()
