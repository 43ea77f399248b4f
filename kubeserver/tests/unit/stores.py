"""What the tests of the store share: keys, values and patience."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from kubeserver.storage.store import (
    Entry,
    ObjectKey,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PODS = Table("main", "", "pods")


def pod(name: str, namespace: str = "default", cluster: str = "main") -> ObjectKey:
    return ObjectKey(cluster, "", "pods", namespace, name)


def value(**fields: object) -> Callable[[int], bytes]:
    return lambda revision: json.dumps({"metadata": {"resourceVersion": str(revision)}, **fields}).encode()


def names(entries: list[Entry]) -> list[str]:
    return [entry.key.path for entry in entries]


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited five seconds in vain")
