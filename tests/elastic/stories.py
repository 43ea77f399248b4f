"""A story that fails tells what happened, on both sides of all its tenants, line by line."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tenants.flows.alongside import alongside, alongside_early

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastic.estate import Elastic

MOST = 120


def story(tell: Callable[..., None]) -> Callable[..., None]:
    """Run a story beside the others (see `tenants.flows.alongside`)."""
    return alongside(_told(tell))


def early_story(tell: Callable[..., None]) -> Callable[..., None]:
    """The same for one that waits for a time limit."""
    return alongside_early(_told(tell))


def _told(tell: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(tell)
    def told(estate: Elastic, **parameters: Any) -> None:
        try:
            tell(estate, **parameters)
        except Exception as error:
            error.add_note("\n".join(["What happened:", *estate.timeline()[-MOST:]]))
            raise

    return told
