"""The file under the store: an append-only log of changes in SQLite, and who may touch it.

One row per change, numbered by its revision; the newest row of a key is its current state, and a row points back
to the one it replaced (`previous`), so nothing but the primary key has to be indexed. Compaction removes rows that
were replaced, and deletions, up to a revision.

The journal must never say that a write is on disk when it is not (every commit is fsynced before `append`
returns), never let two processes write (a lock file is held), and never read a file it does not fully understand.
Exactly one connection writes and checkpoints, and it is used by one thread at a time; readers open the file
read-only. SQLite before 3.51.3 could corrupt a WAL that two connections write or checkpoint at the same moment.

Revisions never come back. What was assigned may have been seen before it was committed (a webhook is shown the
object it is asked about), so not only the committed ones count: `reserved` in the file is always ahead of every
revision ever assigned, and a journal that was not closed starts from there.
"""

# ruff: noqa: S608 - statements are put together from constants only

from __future__ import annotations

import fcntl
import os
import sqlite3
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kubeserver.storage.records import ChangeType, Compacted, Entry, ObjectKey, StoredChange, StoreRefused, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FILE = "store.db"
LOCK = "store.lock"
APPLICATION = 0x4254_4C52  # "BTLR"
SCHEMA = 1
# How many revisions one fsynced reservation covers. They are skipped after a crash; numbers are cheap.
RESERVE = 20_000
# Pages of WAL after which SQLite copies them into the database: fewer checkpoints than its default of 1,000.
CHECKPOINT_PAGES = 4000
# A reader takes a table's history in pieces of this size, and other readers get their turn in between.
PIECE_ROWS = 500
PIECE_BYTES = 4 << 20

_TABLES = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    cluster TEXT NOT NULL,
    grp TEXT NOT NULL,
    plural TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    previous INTEGER NOT NULL,  -- the revision this one replaced; 0: there was no such object
    deleted INTEGER NOT NULL,
    checksum INTEGER NOT NULL,  -- CRC-32 of value
    value BLOB NOT NULL         -- of a deletion: the last state, with the revision of the deletion
);
CREATE TABLE meta (
    compacted INTEGER NOT NULL, -- history up to here is gone
    reserved INTEGER NOT NULL   -- no revision above this was ever assigned
);
INSERT INTO meta VALUES (0, 1);
"""
_CHANGED = (
    "FROM log WHERE revision > ? AND revision <= ?"
    " AND cluster = ? AND grp = ? AND plural = ? AND (? = '' OR namespace = ?)"
)
_CHANGES = (
    "SELECT revision, namespace, name, deleted, value, previous,"
    " (SELECT value FROM log before WHERE before.revision = log.previous)"
    f" {_CHANGED} ORDER BY revision"
)
# SQLite takes the bare columns from the row that has the minimum.
_BEFORE = (
    "SELECT namespace, name, previous,"
    " (SELECT value FROM log before WHERE before.revision = changed.previous) FROM"
    f" (SELECT namespace, name, previous, min(revision) {_CHANGED} GROUP BY namespace, name) changed"
)
_ROW = "(?,?,?,?,?,?,?,?,?,?)"
_MOST_ROWS = 256


class Row(NamedTuple):
    """One change as it is written."""

    revision: int
    cluster: str
    group: str
    plural: str
    namespace: str
    name: str
    previous: int
    deleted: bool
    checksum: int
    value: bytes


def row(entry: Entry, previous: int, *, deleted: bool) -> Row:
    return Row(entry.revision, *entry.key, previous, deleted, zlib.crc32(entry.value), entry.value)


class Journal:
    """The only writer of one data directory, or of memory that ends with it (`in_memory`)."""

    def __init__(self, directory: Path, lock: int | None, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self._lock = lock
        self._connection = connection
        (self.compacted, self.start) = connection.execute("SELECT compacted, reserved FROM meta").fetchone()
        self.reserved: int = self.start

    @classmethod
    def open(cls, directory: Path) -> Journal:
        """Lock and open (or create) the journal in `directory`; raises StoreRefused with a reason to act on."""
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = _locked(directory)
        except OSError as error:
            raise StoreRefused(f"The data directory {directory} cannot be used: {error}.") from error
        try:
            connection = _connected(directory)
            try:
                journal = cls(directory, lock, connection)
                journal.reserve(journal.start)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            os.close(lock)
            raise _refusal(directory, error) from error
        except BaseException:
            os.close(lock)
            raise
        return journal

    @classmethod
    def in_memory(cls) -> Journal:
        """A new journal that no disk keeps."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript(_TABLES)
        journal = cls(Path(), None, connection)
        journal.reserve(journal.start)
        return journal

    def reader(self) -> Reader:
        """History, through a connection of its own where there is a file, so that another thread may ask."""
        return Reader(self._connection if self._lock is None else _read_only(self.directory))

    def replay(self) -> Iterator[Row]:
        """Everything in the log, in order, each row verified."""
        try:
            for found in self._connection.execute("SELECT * FROM log ORDER BY revision"):
                read = Row(*found)
                if zlib.crc32(read.value) != read.checksum:
                    raise _damaged(self.directory, f"revision {read.revision} does not match its checksum")
                yield read
        except sqlite3.Error as error:
            raise _refusal(self.directory, error) from error

    def append(self, rows: Sequence[Row], assigned: int) -> None:
        """Write rows and fsync; either all of them are on disk after this, or none, and sqlite3.Error is raised.

        `assigned` is the highest revision given out so far; the reservation is moved ahead of it in good time.
        """
        reserved = max(self.reserved, assigned + RESERVE) if assigned > self.reserved - RESERVE // 2 else None
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            # Many rows per statement: between two statements this thread may have to wait for the GIL.
            start = 0
            while start < len(rows):
                count = min(_MOST_ROWS, 1 << (len(rows) - start).bit_length() - 1)
                part = rows[start : start + count]
                execute(_insert(count), [column for item in part for column in item])
                start += count
            if reserved is not None:
                execute("UPDATE meta SET reserved = ?", (reserved,))
            execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        if reserved is not None:
            self.reserved = reserved

    def reserve(self, assigned: int) -> None:
        """Make room for revisions after `assigned`, durably."""
        self.append((), assigned)

    def compact(self, target: int, most: int = 1000) -> int:
        """Remove what was replaced up to `target`, at most `most` rows in one go; returns how far it came."""
        execute = self._connection.execute
        after = self.compacted
        rows = execute(
            "SELECT revision FROM log WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT 1 OFFSET ?",
            (after, target, most - 1),
        ).fetchone()
        upto: int = rows[0] if rows else target
        execute("BEGIN IMMEDIATE")
        try:
            execute(
                "DELETE FROM log WHERE revision IN"
                " (SELECT previous FROM log WHERE revision > ? AND revision <= ? AND previous > 0)",
                (after, upto),
            )
            execute("DELETE FROM log WHERE revision > ? AND revision <= ? AND deleted", (after, upto))
            execute("UPDATE meta SET compacted = ?", (upto,))
            execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        self.compacted = upto
        return upto

    def close(self, assigned: int | None) -> None:
        """Close in order: the next start goes on right after `assigned` (None: unknown, it will skip some)."""
        try:
            if assigned is not None:
                self._connection.execute("UPDATE meta SET reserved = ?", (assigned,))
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            pass  # a full disk: the log is complete as it is, and the reservation is still ahead
        finally:
            self._connection.close()
            if self._lock is not None:
                os.close(self._lock)

    def _roll_back(self) -> None:
        # After some errors SQLite has rolled back already, and then this is a mistake that says nothing.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class Reader:
    """Reads history from an open journal. Each question sees one consistent state of it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def changes(self, table: Table, namespace: str | None, *, after: int, upto: int) -> tuple[list[StoredChange], int]:
        """The first changes in (after, upto], and the revision up to which they are all."""
        found: list[StoredChange] = []
        size = 0
        with _Snapshot(self._connection, after):
            for revision, space, name, deleted, value, previous_revision, previous in self._connection.execute(
                _CHANGES, (after, upto, *_of_table(table, namespace))
            ):
                kind: ChangeType = "DELETED" if deleted else "MODIFIED" if previous_revision else "ADDED"
                found.append(
                    StoredChange(
                        kind,
                        ObjectKey(*table, space, name),
                        revision,
                        value,
                        previous=previous,
                        previous_revision=previous_revision,
                    )
                )
                size += len(value)
                if len(found) == PIECE_ROWS or size >= PIECE_BYTES:
                    return found, revision
        return found, upto

    def before(
        self, table: Table, namespace: str | None, *, revision: int, upto: int
    ) -> dict[ObjectKey, tuple[int, bytes] | None]:
        """For each object that changed in (revision, upto]: what it was at `revision`, None if it was not there."""
        with _Snapshot(self._connection, revision):
            return {
                ObjectKey(*table, space, name): (previous, value) if previous else None
                for space, name, previous, value in self._connection.execute(
                    _BEFORE, (revision, upto, *_of_table(table, namespace))
                )
            }


class _Snapshot:
    """A read transaction in which everything after `revision` is known to be still there."""

    def __init__(self, connection: sqlite3.Connection, revision: int) -> None:
        self._connection = connection
        self._revision = revision

    def __enter__(self) -> None:
        self._connection.execute("BEGIN")
        (compacted,) = self._connection.execute("SELECT compacted FROM meta").fetchone()
        if self._revision < compacted:
            self._connection.execute("ROLLBACK")
            raise Compacted(self._revision, compacted)

    def __exit__(self, *_: object) -> None:
        self._connection.execute("ROLLBACK")


@cache
def _insert(count: int) -> str:
    return "INSERT INTO log VALUES " + ",".join([_ROW] * count)


def _of_table(table: Table, namespace: str | None) -> Iterable[str]:
    return (*table, namespace or "", namespace or "")


def _locked(directory: Path) -> int:
    """Take the lock of the data directory, held until the descriptor is closed."""
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.read(lock, 32).decode(errors="replace").strip()
        os.close(lock)
        raise StoreRefused(
            f"The data directory {directory} is in use by another process{f' (pid {owner})' if owner else ''}."
            " Stop that one first, or choose another directory."
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _connected(directory: Path) -> sqlite3.Connection:
    path = directory / FILE
    # The file contains Secrets, so only its owner may read it. SQLite gives its WAL the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _check(connection, directory)
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreRefused(f"{path} cannot be used: its file system does not support SQLite's WAL mode.")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * 4096 * 2}")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            connection.executescript(
                f"BEGIN; {_TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA}; COMMIT;"
            )
            _sync_directory(directory)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(directory: Path) -> sqlite3.Connection:
    uri = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA cache_size = -512")
    return connection


def _check(connection: sqlite3.Connection, directory: Path) -> None:
    path = directory / FILE
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    things = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == version == things == 0:
        return  # a new file
    if application != APPLICATION:
        raise StoreRefused(f"{path} is not a file of this API server. Choose another data directory.")
    if version > SCHEMA:
        raise StoreRefused(
            f"{path} was written by a newer version (format {version}; this one knows {SCHEMA})."
            " Use that version, or choose another data directory."
        )


def _refusal(directory: Path, error: sqlite3.Error) -> StoreRefused:
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return _damaged(directory, error)
    if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):  # a table or column of ours is gone
        return _damaged(directory, error)
    return StoreRefused(f"{directory / FILE} cannot be used: {error}. Check its permissions and the space on its disk.")


def _damaged(directory: Path, what: object) -> StoreRefused:
    return StoreRefused(
        f"{directory / FILE} is damaged: {what}. Restore the directory from a backup, or move it away to start anew."
    )


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
