"""The data directory of an embedded control plane, from another terminal: whether it is served, and deleting it.

Who serves a directory holds a lock on it, and the system takes the lock away when that process ends, however it ends.
So the lock is the truth, and the process id in it only says whom to ask to stop.

Nothing is ever deleted that Butler did not make: the store has to carry Butler's mark, and a directory with anything
else in it is left alone as a whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure
from butler.local.directory import OURS
from kubeserver.storage.journal import APPLICATION, FILE, LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT = Path("~/.butler/local")
POLL = 0.05
SURE = 0.2
"""Seconds between two looks at who holds the lock: a process that starts has the lock a moment before it says so."""
_MARK = slice(68, 72)  # where SQLite keeps the application's mark in its file


class NotOurs(Exception):
    """Why a directory is not touched, in one sentence."""


@dataclass(frozen=True, slots=True)
class Server:
    """The process that serves a directory."""

    pid: int
    since: datetime


def data_directory(given: str | None) -> Path:
    """The directory that is meant: as given, else the usual one."""
    return Path(given or DEFAULT).expanduser().absolute()


def is_data_directory(directory: Path) -> bool:
    """Whether a control plane has been here."""
    try:
        with (directory / FILE).open("rb") as store:
            if int.from_bytes(store.read(_MARK.stop)[_MARK]) == APPLICATION:
                return True
        # After a crash the mark may still stand in the write-ahead log alone.
        with closing(sqlite3.connect(f"{(directory / FILE).as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION)
    except (OSError, sqlite3.Error):
        return False


def serving(directory: Path) -> Server | None:
    """Who serves a directory; None when no process does."""
    first = _holder(directory)
    if first is None:
        return None
    time.sleep(SURE)
    second = _holder(directory)
    return second if second == first or second is None else serving(directory)


def _holder(directory: Path) -> Server | None:
    try:
        lock = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        code = Exit.FORBIDDEN if isinstance(error, PermissionError) else Exit.FAILED
        why = f"{directory} cannot be looked into ({error.strerror})"
        raise Failure(f"{why}: name another directory, or do it as the user who owns this one", code) from None
    try:
        if _take(lock, fcntl.LOCK_SH):
            return None
        text = os.read(lock, 32).decode(errors="replace").strip()
        since = datetime.fromtimestamp(os.fstat(lock).st_mtime, UTC)
        return Server(int(text) if text.isdecimal() else 0, since)
    finally:
        os.close(lock)


def _take(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def stop(directory: Path, server: Server, seconds: float) -> bool:
    """Ask the process to stop, as Ctrl-C does, and wait until it has; False when it takes longer."""
    os.kill(server.pid, signal.SIGTERM)
    until = time.monotonic() + seconds
    while _holder(directory) is not None:
        if time.monotonic() >= until:
            return False
        time.sleep(POLL)
    return True


def size(directory: Path) -> int:
    """Bytes of all files of a data directory."""
    found = 0
    if not is_data_directory(directory):
        return found
    for folder, _, files in os.walk(directory):
        for file in files:
            try:
                found += os.lstat(Path(folder, file)).st_size
            except OSError:  # gone meanwhile
                continue
    return found


def insist_on_ours(directory: Path) -> None:
    """NotOurs for anything but a directory that a control plane made, without any other file in it."""
    if not directory.is_dir():
        raise NotOurs(f"there is no directory {directory}")
    if not is_data_directory(directory):
        raise NotOurs(f"{directory} is not a data directory of Butler (it has no {FILE} of Butler's)")
    strange = sorted(path.name for path in directory.iterdir() if path.name not in OURS)
    if strange:
        named = ", ".join(strange[:3]) + (f" and {len(strange) - 3} more" if len(strange) > 3 else "")
        raise NotOurs(f"{directory} also holds {named}, which is not Butler's: move that elsewhere first")


@contextmanager
def kept_from_starting(directory: Path) -> Iterator[None]:
    """Hold the lock, so that no process starts on what is being deleted; NotOurs when one serves it."""
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _take(lock, fcntl.LOCK_EX):
            raise NotOurs(f"{directory} is in use: stop it first with `butleradm local down`")
        yield
    finally:
        os.close(lock)


def delete(directory: Path) -> None:
    """Delete all that a control plane made; the directory too, unless it is a link to elsewhere."""
    insist_on_ours(directory)
    with kept_from_starting(directory):
        insist_on_ours(directory)
        for name in OURS:  # the lock stays to the end in effect: a process that has it open still holds it
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    if not directory.is_symlink():
        directory.rmdir()
