"""What admission answers about an object of any of our kinds. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from butler.ipam.layout import FieldProblem

NAMED = 3
"""How many holders or pools a message names before it only counts."""


class AdmissionVerdict(NamedTuple):
    """What is wrong, and what the author should know although it is allowed."""

    problems: tuple[FieldProblem, ...] = ()
    warnings: tuple[str, ...] = ()
