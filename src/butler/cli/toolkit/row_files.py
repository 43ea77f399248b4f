"""Files of rows, as people hand them to `ipam import`: read whole, within bounds, and refused in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure
from butler.reports.exchange.rows import UnreadableFile, read_csv, read_document

if TYPE_CHECKING:
    from butler.reports.exchange.rows import Contents

LARGEST = 4 * 1024 * 1024
"""Bytes of a file: ten thousand rows, and room for more than they need."""
SUFFIXES = {".csv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}


def read_rows(file: str, format_: str | None) -> Contents:
    """The rows of a file; Failure where it is none."""
    shown = "stdin" if file == "-" else file
    kind = format_ or SUFFIXES.get(Path(file).suffix.lower())
    if kind is None:
        raise Failure(f"the name of {shown} does not tell its format: say --format csv, json or yaml", Exit.USAGE)
    try:
        return _read(_text(file), kind)
    except OSError as error:
        code = Exit.NOT_FOUND if isinstance(error, FileNotFoundError) else Exit.FAILED
        raise Failure(f"{shown} cannot be read ({error.strerror}): check the name", code) from None
    except UnreadableFile as error:
        raise Failure(f"{shown}: {error}") from None


def _text(file: str) -> str:
    if file == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with open(file, "rb") as opened:
            data = opened.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise UnreadableFile(
            f"it is larger than {LARGEST // 1024 // 1024} MB: split it, and import one part after the other"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"byte {error.start} is no UTF-8 text: save it as UTF-8") from None
    if "\0" in text:
        raise UnreadableFile("it has zero bytes and is no text: save it as UTF-8")
    return text


def _read(text: str, kind: str) -> Contents:
    if not text.strip():
        raise UnreadableFile("it is empty: `butleradm ipam export` shows the form")
    if kind == "csv":
        return read_csv(text)
    if kind == "json":
        import json

        try:
            return read_document(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise (
                error if isinstance(error, UnreadableFile) else UnreadableFile(f"it is no JSON ({error}): mend it")
            ) from None
    from butler.cli.toolkit.yaml_reader import BadYaml, load

    try:
        return read_document(load(text))
    except BadYaml as error:
        raise UnreadableFile(f"{error}: mend it") from None
