"""YAML that people hand us, read as plain data, quickly, whatever the file holds. Times stay text.

The quick reader goes down into nested parts by recursion in C, where too deep means the end of the program, and aliases
make a small file unfold to more than any memory holds. So the text is first gone through event by event, which does
neither, and what no list of ours needs is refused.
"""

from __future__ import annotations

from typing import Any

import yaml

DEEPEST = 16
_Quick: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadYaml(ValueError):
    """Text that is no YAML, or uses what we do not take; the message says where."""


def load(text: str) -> Any:
    """The one document that the text holds."""
    try:
        _check(text)
        return yaml.load(text, Loader=_Plain)  # noqa: S506  # a safe loader, narrowed
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, BadYaml):
            raise
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "it"
        said = getattr(error, "problem", None) or str(error) or type(error).__name__
        raise BadYaml(f"{where} is no YAML ({' '.join(said.split())[:200]})") from None


def _check(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Quick):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            what = "has an alias" if depth <= DEEPEST else f"goes deeper than {DEEPEST} levels"
            raise BadYaml(f"line {event.start_mark.line + 1} {what}, which is not taken")


class _Plain(_Quick):  # type: ignore[misc]
    yaml_implicit_resolvers = {  # noqa: RUF012 (PyYAML's own name)
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
