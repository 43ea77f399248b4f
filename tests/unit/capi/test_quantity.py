"""Quantities become whole numbers of bytes or larger units, rounded up."""

from __future__ import annotations

import pytest

from butler.capi.quantity import GIB, MIB, in_bytes, in_units


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        (1024, 1024),
        ("1024", 1024),
        ("1Ki", 1024),
        ("1.5Ki", 1536),
        ("16Gi", 16 * GIB),
        ("1Ti", 1024 * GIB),
        ("2k", 2000),
        ("1M", 10**6),
        ("0.5G", 5 * 10**8),
        ("1T", 10**12),
        ("1500m", 2),
    ],
)
def test_a_quantity_is_so_many_bytes(text: int | str, amount: int) -> None:
    assert in_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "unit", "units"), [("16Gi", GIB, 16), ("16.1Gi", GIB, 17), ("16G", GIB, 15), ("1", MIB, 1)]
)
def test_a_part_of_a_unit_counts_as_a_whole_one(text: str, unit: int, units: int) -> None:
    assert in_units(text, unit) == units


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "-1", "1GiB", "1e3"])
def test_text_that_is_no_quantity_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        in_bytes(text)
