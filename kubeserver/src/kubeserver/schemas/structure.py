"""What a schema has against a value, in the words of kube-apiserver.

`validate_structure` asks the compiled check of `fits.py` first and returns at once if all is well. Otherwise it
walks the value against the schema in the order in which Kubernetes' validators run (type, combinations, string,
format, number, list, enum, object), because the order decides which causes come first and, below `anyOf` and
`oneOf`, which of several failed branches is reported: the one with the most passed checks (`Outcome.passed`).

Paths: Kubernetes writes `<nil>` for the root, puts the message of a combination there too, and names fields inside
messages relative to what is validated (`replicas in body ...` below a status update's `status`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kubeserver.schemas.correlation import Correlated, same
from kubeserver.schemas.fits import compiled
from kubeserver.schemas.formats import FORMATS, effective, normalized
from kubeserver.schemas.linear import TooCostly
from kubeserver.schemas.regex import PatternError, compile_go
from kubeserver.wire.goformat import marshal, number, quote
from kubeserver.wire.status import FieldError

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema

_SAFE_INTEGER = (1 << 53) - 1


class SchemaProblem(NamedTuple):
    text: str  # problems with equal text are one problem
    error: FieldError


class Outcome:
    """The problems found so far, and how many checks passed or ran on the way."""

    __slots__ = ("passed", "problems")

    def __init__(self) -> None:
        self.problems: list[SchemaProblem] = []
        self.passed = 0

    def add(self, problem: SchemaProblem) -> None:
        if all(problem.text != item.text for item in self.problems):
            self.problems.append(problem)

    def merge(self, other: Outcome) -> None:
        for problem in other.problems:
            self.add(problem)
        self.passed += other.passed


def validate_structure(schema: Schema, value: Any, old: Any = None, *, path: str = "") -> list[FieldError]:
    """What the schema itself has against a value; what an update left unchanged is forgiven.

    `path` is where the value stands in its object (`status` when only the status is validated).
    """
    if compiled(schema)(value):
        return []
    correlation = None if old is None else Correlated(schema, value, old)
    walk = _Walk(path)
    outcome = walk.forgiving(schema, value, "", correlation)
    return [problem.error for problem in outcome.problems]


def _kind_of(value: Any) -> tuple[str, str]:
    """The JSON type of a value and the format that goes with it."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


class _Walk:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    # Where problems stand

    def _field(self, name: str) -> str:
        if not name:
            return self._prefix or "<nil>"
        name = name.removeprefix(".")
        return f"{self._prefix}.{name}" if self._prefix else name

    def _wrong(self, kind: str, name: str, text: str, value: Any) -> SchemaProblem:
        return SchemaProblem(text, FieldError(kind, self._field(name), text, "" if value is None else value))

    def _general(self, text: str) -> SchemaProblem:
        """A problem that Kubernetes reports at the root, whatever it is about."""
        return SchemaProblem(text, FieldError("FieldValueInvalid", self._field(""), text, ""))

    def _mistyped(self, name: str, wanted: str, found: str) -> SchemaProblem:
        text = f"{name} in body must be of type {wanted}: {quote(found)}"
        return self._wrong("FieldValueTypeInvalid", name, text, found)

    # The walk

    def forgiving(self, schema: Schema, value: Any, name: str, correlation: Correlated | None) -> Outcome:
        """Inspect a value, but drop the problems of one that did not change."""
        outcome = self.inspect(schema.authored or schema, value, name, correlation)
        if outcome.problems and correlation is not None and correlation.equal():
            outcome.problems = []
        return outcome

    def inspect(self, schema: Schema, value: Any, name: str, correlation: Correlated | None) -> Outcome:
        outcome = Outcome()
        if value is None:
            self._type(schema, None, name, outcome)
            self._enum(schema, None, name, outcome)
            return outcome
        if schema.type or schema.int_or_string or _format(schema):
            self._type(schema, value, name, outcome)
            outcome.passed += 1
        self._combinations(schema, value, name, correlation, outcome)
        outcome.passed += 1
        if isinstance(value, str):
            self._string(schema, value, name, outcome)
            outcome.passed += 1
            if _format(schema) and normalized(_format(schema)) in FORMATS:
                self._string_format(schema, value, name, outcome)
                outcome.passed += 1
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self._number(schema, value, name, outcome)
            outcome.passed += 2
        elif isinstance(value, list):
            self._list(schema, value, name, correlation, outcome)
            outcome.passed += 2
        self._enum(schema, value, name, outcome)
        outcome.passed += 1
        if isinstance(value, dict):
            self._object(schema, value, name, correlation, outcome)
            outcome.passed += 1
        outcome.passed += 1
        return outcome

    def _type(self, schema: Schema, value: Any, name: str, outcome: Outcome) -> None:
        types = ("integer", "string") if schema.int_or_string else (schema.type,) if schema.type else ()
        wanted = ",".join(types)
        if value is None:
            if types and not schema.nullable:
                outcome.add(self._mistyped(name, wanted, "null"))
            else:
                outcome.passed += 1
            return
        kind, native = _kind_of(value)
        format_name = _format(schema)
        whole_float = (
            kind == "number" and "integer" in types and value == int_or_none(value) and abs(value) <= _SAFE_INTEGER
        )
        fits = kind in types or whole_float or (kind == "integer" and "number" in types)
        if format_name and kind not in ("string", "array") and not fits:
            outcome.add(self._mistyped(name, format_name, native))
        elif (
            (format_name and kind in ("string", "array") and "number" not in types and "integer" not in types)
            or fits
            or not types
        ):
            outcome.passed += 1
        else:
            outcome.add(self._mistyped(name, wanted, kind))

    def _combinations(
        self, schema: Schema, value: Any, name: str, correlation: Correlated | None, outcome: Outcome
    ) -> None:
        outcome.passed += 1
        if schema.any_of:
            self._any_of(schema, value, name, correlation, outcome)
        if schema.one_of:
            self._one_of(schema, value, name, correlation, outcome)
        if schema.all_of:
            results = [self.inspect(item, value, name, correlation) for item in schema.all_of]
            for result in results:
                outcome.merge(result)
            valid = sum(not result.problems for result in results)
            if valid != len(results):
                more = "" if valid else ". None validated"
                outcome.add(self._general(f"{quote(name)} must validate all the schemas (allOf){more}"))
        if schema.not_ is not None and not self.inspect(schema.not_, value, name, correlation).problems:
            outcome.add(self._general(f"{quote(name)} must not validate the schema (not)"))

    def _any_of(self, schema: Schema, value: Any, name: str, correlation: Correlated | None, outcome: Outcome) -> None:
        best: Outcome | None = None
        for item in schema.any_of:
            result = self.inspect(item, value, name, correlation)
            if not result.problems:
                outcome.merge(result)
                return
            if best is None or result.passed > best.passed:
                best = result
        outcome.add(self._general(f"{quote(name)} must validate at least one schema (anyOf)"))
        if best is not None:
            outcome.merge(best)

    def _one_of(self, schema: Schema, value: Any, name: str, correlation: Correlated | None, outcome: Outcome) -> None:
        best: Outcome | None = None
        valid: list[Outcome] = []
        for item in schema.one_of:
            result = self.inspect(item, value, name, correlation)
            if not result.problems:
                valid.append(result)
                best = None
            elif not valid and (best is None or result.passed > best.passed):
                best = result
        if len(valid) == 1:
            outcome.merge(valid[0])
            return
        more = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        outcome.add(self._general(f"{quote(name)} must validate one and only one schema (oneOf). {more}"))
        if best is not None:
            outcome.merge(best)

    def _string(self, schema: Schema, value: str, name: str, outcome: Outcome) -> None:
        if schema.max_length is not None and len(value) > schema.max_length:
            text = f"{name} in body should be at most {schema.max_length} chars long"
            unit = "byte" if schema.max_length == 1 else "bytes"
            detail = f"may not be more than {schema.max_length} {unit}"
            outcome.add(SchemaProblem(text, FieldError("FieldValueTooLong", self._field(name), detail)))
        elif schema.min_length is not None and len(value) < schema.min_length:
            text = f"{name} in body should be at least {schema.min_length} chars long"
            outcome.add(self._wrong("FieldValueInvalid", name, text, value))
        elif schema.pattern:
            wanted = schema.pattern
            try:
                if compile_go(schema.pattern).search(value):
                    return
            except PatternError as problem:
                wanted = f"{schema.pattern}, but pattern is invalid: {problem}"
            except TooCostly as problem:
                wanted = f"{schema.pattern}, but {problem}"
            text = f"{name} in body should match '{wanted}'"
            outcome.add(self._wrong("FieldValueInvalid", name, text, value))

    def _string_format(self, schema: Schema, value: str, name: str, outcome: Outcome) -> None:
        if not FORMATS[normalized(schema.format)](value):
            outcome.add(self._mistyped(name, schema.format, value))

    def _number(self, schema: Schema, value: float, name: str, outcome: Outcome) -> None:
        single = schema.type if not schema.int_or_string and schema.type in ("integer", "number") else ""
        format_name = _format(schema) if single else ""

        def in_range(checked: float, what: str) -> bool:
            if _representable(checked, single, format_name):
                return True
            shape = f"with format {format_name}" if format_name else "(default format)"
            outcome.add(self._general(f"{what} value must be of type {single} {shape} in {name}"))
            return False

        in_range(value, "Checked")
        if schema.multiple_of is not None:
            native = in_range(schema.multiple_of, "MultipleOf")
            self._multiple(schema.multiple_of, value, name, outcome, native=native)
        if schema.minimum is not None:
            native = in_range(schema.minimum, "Minimum boundary")
            bound = int(schema.minimum) if native and isinstance(value, int) else schema.minimum
            if value < bound or (schema.exclusive_minimum and value == bound):
                words = "greater than" if schema.exclusive_minimum else "greater than or equal to"
                text = f"{name} in body should be {words} {number(bound)}"
                outcome.add(self._wrong("FieldValueInvalid", name, text, value if native else float(value)))
        if schema.maximum is not None:
            native = in_range(schema.maximum, "Maximum boundary")
            bound = int(schema.maximum) if native and isinstance(value, int) else schema.maximum
            if value > bound or (schema.exclusive_maximum and value == bound):
                words = "less than" if schema.exclusive_maximum else "less than or equal to"
                text = f"{name} in body should be {words} {number(bound)}"
                outcome.add(self._wrong("FieldValueInvalid", name, text, value if native else float(value)))

    def _multiple(self, factor: float, value: float, name: str, outcome: Outcome, *, native: bool) -> None:
        if native and isinstance(value, int):
            factor = int(factor)
        if factor <= 0:
            text = f"factor MultipleOf declared for {name} must be positive: {number(factor)}"
            outcome.add(self._wrong("FieldValueInvalid", name, text, factor))
            return
        if isinstance(factor, int) and isinstance(value, int):
            fits = value % factor == 0
        else:
            share = 1 / factor * value if factor < 1 else value / factor
            fits = abs(share - round(share)) <= 1e-9 * max(1.0, abs(share)) and abs(share) <= _SAFE_INTEGER
        if not fits:
            text = f"{name} in body should be a multiple of {number(factor)}"
            outcome.add(self._wrong("FieldValueInvalid", name, text, value))

    def _list(
        self, schema: Schema, value: list[Any], name: str, correlation: Correlated | None, outcome: Outcome
    ) -> None:
        if schema.items is not None:
            for index, item in enumerate(value):
                child = None if correlation is None else correlation.item(index)
                outcome.merge(self.forgiving(schema.items, item, f"{name}[{index}]", child))
        size = len(value)
        if schema.min_items is not None and size < schema.min_items:
            text = f"{name} in body should have at least {schema.min_items} items"
            outcome.add(self._wrong("FieldValueInvalid", name, text, size))
        if schema.max_items is not None and size > schema.max_items:
            text = f"{name} in body should have at most {schema.max_items} items"
            outcome.add(self._too_many(name, text, size, schema.max_items))
        if schema.unique_items and any(
            same(item, other) for index, item in enumerate(value) for other in value[:index]
        ):
            outcome.add(self._wrong("FieldValueInvalid", name, f"{name} in body shouldn't contain duplicates", None))

    def _too_many(self, name: str, text: str, size: int, most: int) -> SchemaProblem:
        detail = f"must have at most {most} {'item' if most == 1 else 'items'}"
        return SchemaProblem(text, FieldError("FieldValueTooMany", self._field(name), detail, size))

    def _enum(self, schema: Schema, value: Any, name: str, outcome: Outcome) -> None:
        if not schema.enum or any(_equal_as_enum(value, item) for item in schema.enum):
            return
        supported = tuple(item if isinstance(item, str) else marshal(item) for item in schema.enum)
        text = f"{name} in body should be one of {supported}"
        error = FieldError("FieldValueNotSupported", self._field(name), "", value, supported)
        outcome.add(SchemaProblem(text, error))

    def _object(
        self, schema: Schema, value: dict[str, Any], name: str, correlation: Correlated | None, outcome: Outcome
    ) -> None:
        size = len(value)
        if schema.min_properties is not None and size < schema.min_properties:
            text = f"{name} in body should have at least {schema.min_properties} properties"
            outcome.add(self._wrong("FieldValueInvalid", name, text, size))
        if schema.max_properties is not None and size > schema.max_properties:
            text = f"{name} in body should have at most {schema.max_properties} properties"
            outcome.add(self._too_many(name, text, size, schema.max_properties))
        if schema.additional is not None:
            for key, each in value.items():
                if key not in schema.properties:
                    child = None if correlation is None else correlation.key(key)
                    outcome.merge(self.forgiving(schema.additional, each, f"{name}.{key}", child))
        for key, property_schema in schema.properties.items():
            if key in value:
                child = None if correlation is None else correlation.key(key)
                if not name and key in ("apiVersion", "kind"):
                    child = None
                inner = f"{name}.{key}" if name else key
                outcome.merge(self.forgiving(property_schema, value[key], inner, child))
        for key in schema.required:
            if key not in value:
                text = f"{name}.{key} in body is required"
                error = FieldError("FieldValueRequired", self._field(f"{name}.{key}"), "")
                outcome.add(SchemaProblem(text, error))


def _format(schema: Schema) -> str:
    return effective("" if schema.int_or_string else schema.type, schema.format) if schema.format else ""


def int_or_none(value: float) -> int | None:
    """The integer equal to a number, if it has one."""
    try:
        whole = int(value)
    except (OverflowError, ValueError):
        return None
    return whole if whole == value else None


def _representable(value: float, kind: str, format_name: str) -> bool:
    if kind == "integer":
        whole = int_or_none(value)
        bits = 31 if format_name == "int32" else 63
        return whole is not None and -(1 << bits) <= whole < (1 << bits)
    return format_name != "float" or abs(value) <= 3.4028234663852886e38


def _equal_as_enum(value: Any, allowed: Any) -> bool:
    if value is None or allowed is None:
        return False
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, (int, float)) and isinstance(allowed, (int, float)):
        return value == allowed
    return same(value, allowed)
