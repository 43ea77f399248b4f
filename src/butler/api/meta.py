"""The types that every kind shares: metadata, conditions, references.

`ObjectMeta` keeps what controllers act on. `managedFields`, often half of an object's bytes, is not among it: the
decoder skips over it without building anything. Writing such an object back is safe, as the API server keeps the
managed fields of an object that comes without any.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Generic, TypeVar

from msgspec import field

from butler.api.schema import Part, about

NAME_LENGTH = 253
NAMESPACE_LENGTH = 63
LABEL_LENGTH = 63


class OwnerReference(Part):
    """The object that this one belongs to; when it goes, this one is garbage."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Part):
    """Standard Kubernetes metadata, as far as Butler reads or writes it."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class ListMeta(Part):
    """Where a list stands: the revision it shows, and the token for its next page."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None


Item = TypeVar("Item")


class ListOf(Part, Generic[Item]):
    """One page of a list of resources."""

    metadata: ListMeta
    items: list[Item]


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Part):
    """One observation about a resource, in the form that all of Kubernetes uses."""

    type: Annotated[
        str,
        about(
            "What is observed, such as Ready.",
            pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
            min_length=1,
            max_length=316,
        ),
    ]
    status: Annotated[ConditionStatus, about("Whether it holds: True, False or Unknown.")]
    reason: Annotated[
        str,
        about(
            "Why, as one word in CamelCase that programs can compare.",
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            min_length=1,
            max_length=1024,
        ),
    ]
    message: Annotated[str, about("Why, as a sentence for people.", max_length=32768)]
    last_transition_time: Annotated[datetime, about("When the status last changed.")]
    observed_generation: Annotated[
        int | None,
        about("The generation of the resource that this was observed on.", format="int64", minimum=0),
    ] = None


class LocalObjectReference(Part):
    """An object in the same namespace."""

    name: Annotated[str, about("Name of the object.", min_length=1, max_length=NAME_LENGTH)]


class TeamReference(Part):
    """A team, by a name that also fits into a label."""

    name: Annotated[
        str,
        about(
            "Name of the team.",
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
            min_length=1,
            max_length=LABEL_LENGTH,
        ),
    ]


class NamespacedObjectReference(Part):
    """An object in a namespace that is always spelled out."""

    name: Annotated[str, about("Name of the object.", min_length=1, max_length=NAME_LENGTH)]
    namespace: Annotated[str, about("Namespace of the object.", min_length=1, max_length=NAMESPACE_LENGTH)]


class ProviderConfigReference(Part):
    """A ProviderConfig, by default in Butler's own namespace."""

    name: Annotated[str, about("Name of the ProviderConfig.", min_length=1, max_length=NAME_LENGTH)]
    namespace: Annotated[
        str | None,
        about(
            "Namespace of the ProviderConfig; butler-system when not given.",
            min_length=1,
            max_length=NAMESPACE_LENGTH,
        ),
    ] = None


class SecretReference(Part):
    """A Secret, or one key of it."""

    name: Annotated[str, about("Name of the Secret.", min_length=1, max_length=NAME_LENGTH)]
    namespace: Annotated[
        str | None,
        about(
            "Namespace of the Secret; that of the referring resource when not given.",
            min_length=1,
            max_length=NAMESPACE_LENGTH,
        ),
    ] = None
    key: Annotated[
        str | None,
        about(
            "Key within the Secret, where the provider's usual key is not the one to read.",
            min_length=1,
            max_length=253,
        ),
    ] = None
