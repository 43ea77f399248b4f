"""From the kinds to their pages in docs/reference.

    python -m butler.api.reference docs/reference

The pages say what `kubectl explain` says, in one piece: every field with its limits and default, the rules between
fields, the columns of `kubectl get`, the conditions.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from butler.api import API_VERSION
from butler.api.crd import CATEGORY, write_files
from butler.api.kinds import KINDS
from butler.api.resource import CustomResource
from butler.api.structural import RULES, Schema, structural_schema

HEADER = "<!-- Generated from src/butler/api by `make generate`. Change the types there, not this page. -->\n\n"


def reference_pages() -> dict[str, str]:
    """File name and content of every page."""
    pages = {_page_name(kind): HEADER + _page(kind) for kind in KINDS}
    return {"README.md": HEADER + _index(), **pages}


def _page_name(kind: type[CustomResource]) -> str:
    return f"{kind.definition.singular}.md"


def _index() -> str:
    rows = [
        f"| [{kind.__name__}]({_page_name(kind)}) | `{about.short_name}` | {about.description} |"
        for kind, about in ((kind, kind.definition) for kind in KINDS)
    ]
    return "\n".join(
        [
            "# Custom resources",
            "",
            f"All are of `{API_VERSION}` and live in a namespace. `kubectl get {CATEGORY}` lists all of them.",
            "",
            "| kind | short name | what it is |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _page(kind: type[CustomResource]) -> str:
    definition = kind.definition
    schema = structural_schema(kind)
    lines = [
        f"# {kind.__name__}",
        "",
        definition.description,
        "",
        f"`{API_VERSION}`, namespaced; `kubectl get {definition.plural}`, or `{definition.short_name}` for short.",
        "",
        "```yaml",
        definition.example.strip(),
        "```",
        "",
    ]
    for part in ("spec", "status"):
        fields = schema["properties"][part]
        lines += [f"## {part.capitalize()}", "", fields["description"], "", *_field_table(fields, part), ""]
    lines += ["## Rules", "", "What the API server refuses, beyond the limits of single fields:", ""]
    lines += [*_rules(schema, ""), ""]
    if definition.scale:
        lines += [
            "## Scale",
            "",
            f"`kubectl scale` sets `{definition.scale.wanted}` and reads `{definition.scale.present}`.",
            "",
        ]
    lines += ["## Columns of `kubectl get`", "", "| column | field | what it shows |", "| --- | --- | --- |"]
    lines += [f"| {column.name} | `{column.json_path}` | {column.description} |" for column in definition.columns]
    lines += ["", "## Conditions", "", "| condition | when it is True |", "| --- | --- |"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in definition.conditions.items()]
    return "\n".join([*lines, ""])


def _field_table(schema: Schema, path: str) -> list[str]:
    return [
        "| field | type | required | default | limits | what it is |",
        "| --- | --- | --- | --- | --- | --- |",
        *_rows(schema, path),
    ]


def _rows(schema: Schema, path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        here = f"{path}.{name}"
        default = field.get("default")
        # The default of an object only spells out those of its fields, which have rows of their own.
        shown = "" if default is None or isinstance(default, dict) else f"`{_text(default)}`"
        cells = [
            f"`{here}`",
            _type(field),
            "yes" if name in required else "",
            shown,
            _limits(field),
            field["description"],
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        below = field.get("items", field)
        if "properties" in below:
            yield from _rows(below, f"{here}[]" if "items" in field else here)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field.get("x-kubernetes-preserve-unknown-fields"):
        return "any object"
    if field["type"] == "array":
        return f"list of {_type(field['items'])}s"
    return "time" if field.get("format") == "date-time" else str(field["type"])


def _limits(field: Schema) -> str:
    entry = field.get("items", {})
    limits = [
        "one of " + ", ".join(f"`{value}`" for value in field["enum"]) if "enum" in field else "",
        _span(field.get("minimum"), field.get("maximum"), ""),
        _span(field.get("minLength"), field.get("maxLength"), " characters"),
        _span(field.get("minItems"), field.get("maxItems"), " entries"),
        f"like `{field['pattern']}`" if "pattern" in field and "format" not in field else "",
        *(rule["message"] for rule in [*field.get(RULES, ()), *entry.get(RULES, ())] if _of_one_field(rule, field)),
    ]
    return "; ".join(limit for limit in limits if limit)


def _of_one_field(rule: dict[str, str], field: Schema) -> bool:
    return "properties" not in field.get("items", field) and "oldSelf" not in rule["rule"]


def _span(least: int | None, most: int | None, unit: str) -> str:
    if least is not None and most is not None:
        return f"{least} to {most}{unit}"
    if least is not None:
        return f"at least {least}{unit}"
    return f"at most {most}{unit}" if most is not None else ""


def _rules(schema: Schema, path: str) -> Iterator[str]:
    """Rules between fields, and those about changes, with the field that is blamed."""
    between_fields = "properties" in schema
    for rule in schema.get(RULES, ()):
        if between_fields or "oldSelf" in rule["rule"]:
            blamed = (path + rule.get("fieldPath", "")).lstrip(".")
            yield f"- `{blamed}`: {rule['message']}."
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m butler.api.reference FOLDER")
    write_files(Path(sys.argv[1]), reference_pages())
