"""Objects as YAML that can be printed and edited: what a terminal would obey is escaped, and means the same."""

from __future__ import annotations

from typing import Any

import yaml

from butler.api.printable import UNSAFE


def dumped(*documents: Any) -> str:
    """The documents, with letters of all languages as they are unless something in them must not be printed."""
    text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=False) if UNSAFE.search(text) else text
