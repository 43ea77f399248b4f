"""Go's regular expressions: what matches, and what Go refuses."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver import patience
from kubeserver.schemas import regex
from kubeserver.schemas.regex import PatternError, compile_go


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        ("(?m)^a$", "b\na\nc", True),
        (r"^\d+$", "١٢", False),
        (r"^\w$", "é", False),
        (r"\bfoo\b", "a foo b", True),
        (r"^[[:alpha:]]+$", "ab", True),
        (r"^[[:^alpha:]]+$", "12", True),
        (r"[^\s]", "\v", True),
        (r"^[\w.-]+$", "a-b.c", True),
        (r"^\pL+$", "äé", True),
        (r"^\p{Greek}$", "\N{GREEK SMALL LETTER ALPHA}", True),
        (r"^\PL$", "1", True),
        (r"a{,5}", "a{,5}", True),
        (r"^a{2,3}$", "aaaa", False),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        ("x|(?i)y|z", "Z", True),
        ("(?i:a)b", "AB", False),
        (r"[\x41-\x{43}]", "B", True),
        (r"[]a]", "]", True),
        (r"[^]a]", "b", True),
        (r"[a\]]", "]", True),
        (r"[[-a]", "[", True),
        (r"[a&&b||c]", "&", True),
        (r"^a.c$", "a\nc", False),
        (r"(?s)^a.c$", "a\nc", True),
        (r"(?P<x>a)(?<y>b)", "ab", True),
        (r"^\z", "", True),
        (r"\x{1F600}", "😀", True),
        (r"\101", "A", True),
        (r"[\D]", "x", True),
    ],
)
def test_patterns_match_as_in_go(pattern: str, text: str, matches: bool) -> None:
    assert compile_go(pattern).search(text) == matches


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("a)", "unexpected ): `a)`"),
        ("(a", "missing closing ): `(a`"),
        ("[a", "missing closing ]: `[a`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as refusal:
        compile_go(pattern)
    assert str(refusal.value) == f"error parsing regexp: {problem}"


@given(st.text(alphabet="ab[]()^$*+?{},-\\dwsxpPQE.|:i<>=!0159\n", max_size=12))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    with contextlib.suppress(PatternError):
        compile_go(pattern).search("ab\n")


@pytest.mark.parametrize(
    "pattern",
    [
        r"[\D\W\S]" * 50,
        r"[[:^alpha:][:^punct:]]" * 50,
        r"[\P{L}\P{Lu}\P{Cyrillic}]" * 20,
        "".join(rf"\p{{{name}}}" for name in ("Lu", "Ll", "Nd", "Sm", "Zs", "Cc", "Greek", "Latin", "Cyrillic")) * 8,
    ],
    ids=lambda pattern: pattern[:24],
)
def test_classes_are_compiled_without_looking_at_every_character(pattern: str) -> None:
    compile_go(r"\p{L}\p{Greek}")  # the tables are made once
    began = time.process_time()
    compile_go(pattern)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "pattern", ["((((){1000}){1000}){1000}){1000}", "(a{1000}){100}", r"\p{L}" * 1000, "[a]" * 30_000]
)
def test_a_short_text_that_means_a_large_pattern_is_refused(pattern: str) -> None:
    began = time.process_time()
    with pytest.raises(PatternError, match="expression too large"):
        compile_go(pattern)
    assert time.process_time() - began < 5


def test_compiling_counts_its_steps() -> None:
    for pattern in ("(a{1000}){20}", r"\p{L}" * 100):
        with pytest.raises(patience.Costly), patience.limited():
            compile_go(pattern)
        compile_go(pattern)
        with patience.limited():
            compile_go(pattern)  # is remembered


def test_what_is_remembered_of_all_patterns_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_MOST_WORDS_REMEMBERED", 100_000)
    for number in range(30):
        compile_go(f"(a{{100}}){{2}}{number}")
        assert regex._remembered.size <= 100_000
    used = [compile_go(f"x{{0,40}}x{{40}}{number}") for number in range(10)]
    before = sum(each.size for each in used)
    for each in used:
        each.search("x" * 80)
    assert sum(each.size for each in used) > before + 10_000, "they grow while they are used"
    for _ in range(regex._WEIGHED_EVERY):
        compile_go("a")
    assert regex._remembered.size <= 100_000
