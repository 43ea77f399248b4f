"""Matching without backtracking: the same verdicts as `re`, in time proportional to the text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.schemas.linear import Automaton, TooCostly, TooLarge

ATOMS = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "^", r"\Z", r"(?a:\b)", "(?i:A)", r"(?m:^)", "(?s:.)"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.text("abA \n", max_size=8))
def test_the_verdict_is_that_of_re(pattern: str, text: str) -> None:
    assert Automaton(pattern).search(text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a+", "baaab", ["aaa"]),
        ("a+?", "aa", ["a", "a"]),
        ("a|ab", "ab ab", ["a", "a"]),
        ("ab|a", "ab a", ["ab", "a"]),
        ("a*", "baac", ["", "aa", ""]),
        (r"[0-9]{2,3}", "1 12 1234", ["12", "123"]),
        ("x", "abc", []),
    ],
)
def test_matches_are_found_where_go_finds_them(pattern: str, text: str, found: list[str]) -> None:
    assert list(Automaton(pattern).find_all(text)) == found


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+b", ".*.*.*x", "(?:a?){30}a{30}b"])
def test_patterns_that_make_re_explode_are_answered_at_once(pattern: str) -> None:
    began = time.perf_counter()
    assert not Automaton(pattern).search("a" * 100_000)
    assert time.perf_counter() - began < 30


def test_a_pattern_that_takes_too_many_steps_is_refused_and_may_try_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pattern = Automaton("(?:x{0,900})x{900}y")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)  # however long a busy machine takes for it
    with pytest.raises(TooCostly):
        pattern.search("x" * 100_000)
    later = now + 3600
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert pattern.search("x" * 950 + "y")


def test_an_automaton_has_a_limit() -> None:
    with pytest.raises(TooLarge):
        Automaton("(?:(?:a{100}){100}){100}")
