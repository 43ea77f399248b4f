"""What `kubectl explain` says about built-in kinds, in our words.

The table of shapes carries no prose: the sentences of Kubernetes are not ours to copy. `builtin_descriptions.json`
has ours, by type and field. A type is known by the last three parts of its name (`core.v1.Pod`); under the key
`""` is what is said of the type itself. `"="` names another type whose sentences hold for fields of the same name, and
the type `*` says what holds for a field of that name anywhere. The nearest sentence wins. A field without one shows its
type alone.

The table is not kept in memory: it is read when an OpenAPI document is made, which is rare because documents are kept
encoded, and let go afterwards. Schemas never carry these sentences.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import msgspec

Table = dict[str, dict[str, str]]

ITSELF: Final = ""
LIKE: Final = "="
ANYWHERE: Final = "*"


class Descriptions:
    """Looks up sentences; empty where there is none."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_type(self, name: str) -> str:
        return self._table.get(short(name), {}).get(ITSELF, "")

    def of_fields(self, name: str) -> dict[str, str]:
        """The sentences by field, also of fields that the type may not have."""
        own = self._table.get(short(name), {})
        return {**self._table.get(ANYWHERE, {}), **self._table.get(own.get(LIKE, ""), {}), **own}


NO_DESCRIPTIONS: Final = Descriptions({})


def read_table() -> Table:
    """The table as it is written, anew each time."""
    text = files("kubeserver.schemas").joinpath("builtin_descriptions.json").read_bytes()
    return msgspec.json.decode(text, type=Table)


def short(name: str) -> str:
    """The name by which the table knows a type: `io.k8s.api.core.v1.Pod` is `core.v1.Pod`."""
    return ".".join(name.rsplit(".", 3)[-3:])
