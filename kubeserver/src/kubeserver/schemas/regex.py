"""Go's regular expressions, in Python.

Schemas and CEL rules are written for RE2. Its syntax is close enough to Python's to be misread in silence: `$`
matches before a last newline in Python, `\\d` matches Thai digits, `x*+` is a possessive repetition, `{,5}` a
count, and lookahead is accepted. `compile_go` therefore reads the pattern as Go does, refuses what Go refuses in
Go's words, and writes an equivalent pattern in the language of `re`. It is not `re` that runs it, though: that one
backtracks, and `(a+)+b` would stop the server. `linear.py` does, in time proportional to the text. (A binding of RE2
would be quicker, but a compiled wheel lags behind new Python versions and would keep `make run` from working on them.)
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import OrderedDict
from functools import cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Final

from kubeserver import patience
from kubeserver.schemas.linear import Automaton, TooLarge

_MAX_REPEAT: Final = 1000
_LONGEST: Final = 64 * 1024  # characters of a pattern
_LONGEST_WRITTEN: Final = 512 * 1024  # and of what it becomes: `\p{L}` alone becomes two thousand
_MOST_REMEMBERED: Final = 2048  # patterns
_MOST_WORDS_REMEMBERED: Final = 10_000_000  # of all of them: 80 MB
_WEIGHED_EVERY: Final = 256  # uses: they grow while they are used
_LAST_CODE: Final = 0x10FFFF
_DIGITS: Final = "0-9"
_WORD: Final = "0-9A-Za-z_"
_SPACE: Final = r"\t\n\f\r "
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": _WORD,
    "xdigit": "0-9A-Fa-f",
}
_CONTROL: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_SETS: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}


class PatternError(ValueError):
    """A pattern that Go would not compile; the text is Go's."""

    def __init__(self, problem: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{where}`")


class _Remembered:
    """Patterns that were compiled, the last used of them, as far as memory goes: users bring as many as they like."""

    def __init__(self) -> None:
        self._patterns: OrderedDict[str, Automaton] = OrderedDict()
        self._uses = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        return sum(automaton.size for automaton in self._patterns.values())

    def get(self, pattern: str) -> Automaton | None:
        with self._lock:
            found = self._patterns.get(pattern)
            if found is not None:
                self._patterns.move_to_end(pattern)
            self._uses += 1
            if self._uses % _WEIGHED_EVERY == 0:
                self._forget_oldest()
            return found

    def add(self, pattern: str, automaton: Automaton) -> None:
        with self._lock:
            self._patterns[pattern] = automaton
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        size = self.size
        while len(self._patterns) > _MOST_REMEMBERED or size > _MOST_WORDS_REMEMBERED:
            size -= self._patterns.popitem(last=False)[1].size


_remembered: Final = _Remembered()


def compile_go(pattern: str) -> Automaton:
    """Compile a Go pattern; raises PatternError where Go's `regexp.Compile` fails.

    It may take half a second, and counts its steps (`patience`).
    """
    found = _remembered.get(pattern)
    if found is None:
        found = _compiled(pattern)
        _remembered.add(pattern, found)
    return found


def _compiled(pattern: str) -> Automaton:
    if len(pattern) > _LONGEST:
        raise PatternError("expression too large", f"{pattern[:64]}...")
    try:
        return Automaton(_Translator(pattern).run())
    except TooLarge:
        raise PatternError("expression too large", pattern) from None
    except RecursionError:
        raise PatternError("expression nests too deeply", pattern) from None
    except (re.error, OverflowError) as problem:
        raise PatternError(str(problem), pattern) from problem


class _Translator:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.out: list[str] = []
        self.written = 0  # characters of it
        # One entry per open group: the flag groups opened inside it, to be closed with it.
        self.flags: list[list[str]] = [[]]
        self.repeatable = False  # whether there is something before us to repeat
        self.repeated_from: int | None = None  # where the repetition operator just read starts

    def run(self) -> str:
        while self.at < len(self.text):
            self._one(self.text[self.at])
        if len(self.flags) > 1:
            raise PatternError("missing closing )", self.text)
        self.out.append(")" * len(self.flags[0]))
        return "".join(self.out)

    def _one(self, character: str) -> None:
        if character in "*+?" or (character == "{" and self._counts()):
            self._repetition()
            return
        self.repeated_from = None
        if character == "\\":
            self._escape()
        elif character == "[":
            self._class()
        elif character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "|":
            opened = self.flags[-1]
            self._emit(")" * len(opened) + "|" + "".join(opened), 1, repeatable=False)
        elif character == "^":
            self._emit("^", 1, repeatable=True)
        elif character == "$":
            self._emit("$" if self._multiline() else r"\Z", 1, repeatable=True)
        elif character == ".":
            self._emit(".", 1)
        else:
            self._emit(re.escape(character), 1)

    def _emit(self, text: str, length: int, *, repeatable: bool = True) -> None:
        self._count(text)
        self.out.append(text)
        self.at += length
        self.repeatable = repeatable

    def _count(self, text: str) -> None:
        self.written += len(text)
        if self.written > _LONGEST_WRITTEN:
            raise TooLarge
        patience.spend(len(text))

    def _multiline(self) -> bool:
        return any("m" in flag.split("-")[0] for group in self.flags for flag in group)

    def _counts(self) -> re.Match[str] | None:
        return re.compile(r"\{(\d+)(,(\d*))?\}").match(self.text, self.at)

    def _repetition(self) -> None:
        start = self.at
        counts = self._counts() if self.text[start] == "{" else None
        operator = counts.group() if counts else self.text[start]
        if not self.repeatable and self.repeated_from is None:
            raise PatternError("missing argument to repetition operator", operator)
        lazy = "?" if self.text[start + len(operator) : start + len(operator) + 1] == "?" else ""
        if self.repeated_from is not None:
            whole = self.text[self.repeated_from : start + len(operator) + len(lazy)]
            raise PatternError("invalid nested repetition operator", whole)
        if counts:
            low, high = int(counts.group(1)), counts.group(3)
            if low > _MAX_REPEAT or (high and (int(high) > _MAX_REPEAT or int(high) < low)):
                raise PatternError("invalid repeat count", operator)
        self.repeated_from = start
        self._emit(operator + lazy, len(operator) + len(lazy))

    def _open(self) -> None:
        rest = self.text[self.at :]
        if not rest.startswith("(?"):
            self.flags.append([])
            self._emit("(", 1, repeatable=False)
            return
        named = re.match(r"\(\?P?<(\w+)>", rest)
        if named:
            self.flags.append([])
            self._emit(f"(?P<{named.group(1)}>", named.end(), repeatable=False)
            return
        flags = re.match(r"\(\?([imsU]*(?:-[imsU]+)?)([:)])", rest)
        if not flags or (flags.group(1) == "" and flags.group(2) == ")"):
            raise PatternError("invalid or unsupported Perl syntax", rest[:3])
        # `U` swaps greedy and lazy, which changes what is captured but never whether there is a match.
        text = flags.group(1).replace("U", "").removesuffix("-")
        if flags.group(2) == ":":
            self.flags.append([])
            self._emit(f"(?{text}:", flags.end(), repeatable=False)
        else:
            self.flags[-1].append(f"(?{text}:")
            self._emit(f"(?{text}:", flags.end(), repeatable=False)

    def _close(self) -> None:
        if len(self.flags) == 1:
            raise PatternError("unexpected )", self.text)
        opened = self.flags.pop()
        self._emit(")" * (len(opened) + 1), 1)

    def _escape(self) -> None:
        rest = self.text[self.at :]
        if len(rest) == 1:
            raise PatternError("trailing backslash at end of expression", "")
        kind = rest[1]
        if kind in _SETS:
            self._emit(f"[{_SETS[kind]}]", 2)
        elif kind.lower() in _SETS:
            self._emit(f"[^{_SETS[kind.lower()]}]", 2)
        elif kind in "bB":
            self._emit(f"(?a:\\{kind})", 2)
        elif kind == "A":
            self._emit(r"\A", 2)
        elif kind == "z":
            self._emit(r"\Z", 2)
        elif kind == "C":
            self._emit("(?s:.)", 2)
        elif kind == "Q":
            literal, _, _ = rest[2:].partition("\\E")
            closed = rest.startswith("\\E", 2 + len(literal))
            self._emit(re.escape(literal), 2 + len(literal) + (2 if closed else 0), repeatable=bool(literal))
        elif kind in "pP":
            content, length = self._category(rest)
            self._emit(content, length)
        else:
            character, length = self._character(rest)
            self._emit(re.escape(character), length)

    def _character(self, rest: str) -> tuple[str, int]:
        """The character that an escape stands for, in a class or outside, and how much was read."""
        kind = rest[1:2]
        if kind in _CONTROL:
            return _CONTROL[kind], 2
        if kind == "x":
            hexadecimal = re.match(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))", rest)
            code = int(hexadecimal.group(1) or hexadecimal.group(2), 16) if hexadecimal else -1
            if not hexadecimal or code > 0x10FFFF:
                raise PatternError("invalid escape sequence", rest[:3])
            return chr(code), hexadecimal.end()
        octal = re.match(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", rest)
        if octal:
            return chr(int(octal.group(1), 8)), octal.end()
        if kind.isascii() and not kind.isalnum() and kind:
            return kind, 2
        raise PatternError("invalid escape sequence", rest[:2])

    def _category(self, rest: str) -> tuple[str, int]:
        found = re.match(r"\\[pP](?:\{(\^?)(\w+)\}|(\w))", rest)
        if not found:
            raise PatternError("invalid character class range", rest[:3])
        negated = (rest[1] == "P") != (found.group(1) == "^")
        ranges = _category_ranges(found.group(2) or found.group(3))
        if ranges is None:
            raise PatternError("invalid character class range", found.group())
        return f"[{'^' if negated else ''}{ranges}]", found.end()

    def _class(self) -> None:
        start = self.at
        parts = ["["]
        self.at += 1
        if self.text.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise PatternError("missing closing ]", self.text[start:])
            parts.append(self._class_member(start))
            self._count(parts[-1])
            first = False
        self._emit("".join(parts) + "]", 1)

    def _class_member(self, start: int) -> str:
        posix = re.compile(r"\[:(\^?)(\w+):\]").match(self.text, self.at)
        if posix:
            content = _POSIX.get(posix.group(2))
            if content is None:
                raise PatternError("invalid character class range", posix.group())
            self.at = posix.end()
            return _complement(content) if posix.group(1) else content
        rest = self.text[self.at :]
        if rest[0] == "\\" and len(rest) > 1:
            kind = rest[1]
            if kind in _SETS:
                self.at += 2
                return _SETS[kind]
            if kind.lower() in _SETS:
                self.at += 2
                return _complement(_SETS[kind.lower()])
            if kind in "pP":
                content, length = self._category(rest)
                self.at += length
                inner = content[1:-1]
                return _complement(inner[1:]) if inner.startswith("^") else inner
        low_from = self.at
        low, low_code = self._class_character(start)
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            high, high_code = self._class_character(start)
            if high_code < low_code:
                raise PatternError("invalid character class range", self.text[low_from : self.at])
            return f"{low}-{high}"
        return low

    def _class_character(self, start: int) -> tuple[str, int]:
        if self.at >= len(self.text):
            raise PatternError("missing closing ]", self.text[start:])
        rest = self.text[self.at :]
        character, length = self._character(rest) if rest[0] == "\\" else (rest[0], 1)
        self.at += length
        # Beyond what re.escape does: these may one day mean something when doubled inside a class.
        return f"\\{character}" if character in "&~|" else re.escape(character), ord(character)


def _complement(content: str) -> str:
    """What a class does not hold, written so that it can stand inside another class."""
    ((kind, members),) = _parser.parse(f"[{content}]")
    if kind is op.LITERAL:
        stretches = [(members, members)]
    else:
        stretches = sorted(member if kind is op.RANGE else (member, member) for kind, member in members)
    written, following = [], 0
    for low, high in stretches:
        if low > following:
            written.append(_range(following, low - 1))
        following = max(following, high + 1)
    if following <= _LAST_CODE:
        written.append(_range(following, _LAST_CODE))
    return "".join(written)


def _category_ranges(name: str) -> str | None:
    if name == "Any":
        return "\\x00-\U0010ffff"
    if re.fullmatch(r"[LMNPSZC][a-z]?", name):
        return _categories().get(name)
    # A script: the names of characters start with it, which is right for the scripts people write patterns in.
    return _scripts().get(name.upper()) if len(name) > 2 else None


@cache
def _categories() -> dict[str, str]:
    """The characters of every category, such as `Lu`, and of all that begin with the same letter."""
    found: dict[str, list[int]] = {}
    for code in range(_LAST_CODE + 1):
        name = unicodedata.category(chr(code))
        found.setdefault(name, []).append(code)
        found.setdefault(name[0], []).append(code)
    return {name: _ranges(codes) for name, codes in found.items()}


@cache
def _scripts() -> dict[str, str]:
    found: dict[str, list[int]] = {}
    for code in range(0x3000):
        first, _, rest = unicodedata.name(chr(code), "").partition(" ")
        if rest:
            found.setdefault(first, []).append(code)
    return {name: _ranges(codes) for name, codes in found.items()}


def _ranges(codes: list[int]) -> str:
    parts: list[str] = []
    low = high = -2
    for code in codes:
        if code == high + 1:
            high = code
            continue
        if high >= 0:
            parts.append(_range(low, high))
        low = high = code
    if high >= 0:
        parts.append(_range(low, high))
    return "".join(parts)


def _range(low: int, high: int) -> str:
    return re.escape(chr(low)) if low == high else f"{re.escape(chr(low))}-{re.escape(chr(high))}"
