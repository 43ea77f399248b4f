"""Which strategy belongs to which kind: the one place that imports every module of `builtin`."""

from __future__ import annotations

from typing import Final

from butler.local.apiserver.resources import Strategy

_STRATEGIES: Final[dict[tuple[str, str], Strategy]] = {}


def strategy_of(group: str, plural: str) -> Strategy:
    """The strategy of a built-in kind; one without behaviour of its own gets the empty one."""
    return _STRATEGIES.get((group, plural), Strategy())
