"""What a kind is beyond its fields: its names, the columns that `kubectl get` prints, the conditions it reports."""

from enum import StrEnum
from typing import ClassVar, Literal

from msgspec import Struct

from butler.api.labels import ConditionType
from butler.api.meta import ObjectMeta
from butler.api.schema import Part, Rule


class ColumnType(StrEnum):
    """How a column is printed: a date becomes an age."""

    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    DATE = "date"


class Column(Struct, frozen=True):
    """One column of `kubectl get`."""

    name: str
    json_path: str
    description: str
    type: ColumnType = ColumnType.STRING


AGE = Column("Age", ".metadata.creationTimestamp", "Time since the resource was created.", ColumnType.DATE)


class Scale(Struct, frozen=True):
    """Where `kubectl scale` writes the wanted number, and where it reads the present one."""

    wanted: str
    present: str


class Definition(Struct, frozen=True):
    """A kind as the API server has to know it."""

    plural: str
    singular: str
    short_name: str
    description: str
    columns: tuple[Column, ...]
    conditions: dict[ConditionType, str]
    """What each condition means when it is True."""
    example: str
    """A complete resource, for the reference page."""
    scale: Scale | None = None


class CustomResource(Part, omit_defaults=False):
    """The root of a custom resource: always written with its apiVersion and kind, hence no omitted defaults."""

    definition: ClassVar[Definition]

    api_version: Literal["butler.butlerlabs.dev/v1alpha1"] = "butler.butlerlabs.dev/v1alpha1"
    kind: str
    metadata: ObjectMeta


def name_at_most(length: int, because: str) -> Rule:
    """The rule that a resource's own name fits where Butler has to put it."""
    return Rule(
        expression=f"size(self.metadata.name) <= {length}",
        message=f"the name must have at most {length} characters, {because}",
        field_path=".metadata.name",
    )
