"""Go's printers, value by value."""

from __future__ import annotations

from typing import Any

import pytest

from kubeserver.wire.goformat import marshal, number, quote, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (1.5, "1.5"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (123456789.5, "1.234567895e+08"),
        (1e21, "1e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.5, "-0.5"),
        (7, "7"),
    ],
)
def test_numbers_print_as_percent_v(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("tab\tnew\n", '"tab\\tnew\\n"'),
        ("ünï☃", '"ünï☃"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("\u200b", '"\\u200b"'),
    ],
)
def test_strings_print_as_percent_q(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ("<&>", '"\\u003c\\u0026\\u003e"'),
        (1e6, "1000000"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (0.00001, "0.00001"),
    ],
)
def test_json_prints_as_encoding_json_does(value: Any, text: str) -> None:
    assert marshal(value) == text


def test_field_errors_quote_strings_and_marshal_the_rest() -> None:
    assert shown("<") == '"<"'
    assert shown({"a": "<"}) == '{"a":"\\u003c"}'
    assert shown(None) == "null"
    assert shown(1e6) == "1e+06"
