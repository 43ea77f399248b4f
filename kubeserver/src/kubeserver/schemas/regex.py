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
import unicodedata
from functools import lru_cache
from typing import Final

from kubeserver.schemas.linear import Automaton, TooLarge

_MAX_REPEAT: Final = 1000
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


@lru_cache(maxsize=4096)
def compile_go(pattern: str) -> Automaton:
    """Compile a Go pattern; raises PatternError where Go's `regexp.Compile` fails."""
    translated = _Translator(pattern).run()
    try:
        return Automaton(translated)
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
        self.out.append(text)
        self.at += length
        self.repeatable = repeatable

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
    inside = re.compile(f"[{content}]")
    return _ranges(code for code in range(0x110000) if not inside.match(chr(code)))


@lru_cache(maxsize=64)
def _category_ranges(name: str) -> str | None:
    if name == "Any":
        return "\\x00-\U0010ffff"
    if not re.fullmatch(r"[LMNPSZC][a-z]?", name):
        if len(name) < 3:
            return None
        # A script: the names of characters start with it, which is right for the scripts people write patterns in.
        prefix = name.upper() + " "
        found = _ranges(code for code in range(0x3000) if unicodedata.name(chr(code), "").startswith(prefix))
        return found or None
    return _ranges(code for code in range(0x110000) if unicodedata.category(chr(code)).startswith(name)) or None


def _ranges(codes: object) -> str:
    parts: list[str] = []
    low = high = -2
    for code in codes:  # type: ignore[attr-defined]
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
