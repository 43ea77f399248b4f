"""The little of an object that decides about its life, decoded without the rest."""

from __future__ import annotations

from typing import Final

import msgspec


class OwnerReference(msgspec.Struct, rename="camel", gc=False, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


class Metadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None


class _Glance(msgspec.Struct, gc=False):
    metadata: Metadata


_decode: Final = msgspec.json.Decoder(_Glance).decode


def glance(value: bytes) -> Metadata:
    return _decode(value).metadata


class _Labels(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Labels


_decode_labels: Final = msgspec.json.Decoder(_Labelled).decode


def labels(value: bytes) -> dict[str, str]:
    return _decode_labels(value).metadata.labels or {}
