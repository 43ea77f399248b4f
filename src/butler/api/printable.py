r"""Text of others, made safe to print: what steers a terminal, or turns the order of letters around, is shown instead.

An ESC in a description can move the cursor, rename a window or answer in the reader's name; a bidirectional control can
make one name look like another. What is not a letter to be seen is written as in Python: `\x1b`, `\u202e`. Pure.
"""

import re
from typing import Final

_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_TURNING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSEEN: Final = "\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
UNSAFE: Final = re.compile(f"[{_CONTROLS}{_TURNING}{_UNSEEN}]")
"""All of it but the line feed and the tab, of which lines and columns are made."""
_UNSAFE_IN_A_LINE: Final = re.compile(f"[{_CONTROLS}{_TURNING}{_UNSEEN}\t\n]")
_SPELLED: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def visible(text: str) -> str:
    """Text of several lines in which nothing is left that a terminal would obey."""
    return UNSAFE.sub(_spelled, text.replace("\r\n", "\n")) if UNSAFE.search(text) else text


def one_line(text: str, longest: int | None = None) -> str:
    """The same of text that has to stay in its line, and may be so long."""
    shown = _UNSAFE_IN_A_LINE.sub(_spelled, text) if _UNSAFE_IN_A_LINE.search(text) else text
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 1]}…"


def in_json(document: str) -> str:
    """JSON that means the same and can be printed: such characters stand in strings alone, and are escaped there."""
    return UNSAFE.sub(_escaped, document) if UNSAFE.search(document) else document


def _spelled(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _SPELLED:
        return _SPELLED[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
