"""YAML that people hand us, read as plain data, quickly. Times stay text, and there is no merging (`<<`).

Aliases are references here and cost nothing; merging them is what makes a small file unfold to more than any memory
holds. Whoever prints what was read must not unfold it either.
"""

from __future__ import annotations

from typing import Any

import yaml


class BadYaml(ValueError):
    """Text that is no YAML, or uses what we do not take; the message says where."""


def load(text: str) -> Any:
    """The one document that the text holds."""
    try:
        return yaml.load(text, Loader=_Plain)  # noqa: S506  # a safe loader, narrowed
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "it"
        said = getattr(error, "problem", None) or str(error) or type(error).__name__
        raise BadYaml(f"{where} is no YAML ({' '.join(said.split())[:200]})") from None


class _Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    def flatten_mapping(self, node: Any) -> None:
        """Merge nothing: a `<<` then has no meaning, and is refused."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
