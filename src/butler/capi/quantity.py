"""Quantities as Kubernetes writes them (16Gi, 1.5T, 500m), as whole bytes.

Providers take whole units: one counts MiB, another GiB. Rounding is always up, because a machine that is a little
larger than asked for does its work, and one that is smaller may not. The schema of our kinds has checked the text
already, so text that does not parse is a fault of the program.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Final

MIB: Final = 2**20
GIB: Final = 2**30

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_FACTOR: Final[dict[str | None, Fraction]] = {
    None: Fraction(1),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    **{unit: Fraction(1000) ** power for power, unit in enumerate("MGTPE", start=2)},
    **{f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def in_bytes(quantity: int | str) -> int:
    """The quantity in bytes, rounded up: in_bytes("1.5Ki") == 1536."""
    if isinstance(quantity, int):
        return quantity
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    number, unit = match.groups()
    return ceil(Fraction(number) * _FACTOR[unit])


def in_units(quantity: int | str, unit: int) -> int:
    """How many whole units (MIB, GIB) hold the quantity: in_units("1.5Gi", GIB) == 2."""
    return -(-in_bytes(quantity) // unit)
