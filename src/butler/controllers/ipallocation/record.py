"""The record of a grant, written by the one who is about to hand the addresses out.

Before machines or MetalLB are given addresses, the management cluster is asked whether they are still the cluster's.
And what was granted is repeated in the metadata of its allocation, once. Where the record is missing, one request does
both: the write is valid only for the version of the allocation that was looked at, so a server that takes it says that
nothing has changed since, neither a deletion nor a mark, and a read could not say more. A server that does not take it
is asked by a read, as where there is nothing to record.

So the record stands before the addresses are used for the first time: no backup has machines without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation
from butler.api.objects import key_of
from butler.ipam.granted import due_record, is_from_another_life, recorded_grant
from butler.kube.absence import read
from butler.kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from butler.kube.kinds import ALLOCATIONS, WRITE_TIMEOUT

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Json
    from butler.ipam.granted import GrantRecord
    from butler.kube.cache import Cache
    from butler.kube.client import Client


def record_patch(allocation: IPAllocation, record: GrantRecord | None, labels: dict[str, str] | None = None) -> Json:
    """A merge patch of the metadata, for this very object in this very version."""
    meta = allocation.metadata
    patch: Json = {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "annotations": {Annotation.GRANTED.value: record.text if record else None},
    }
    return {"metadata": patch | ({"labels": labels} if labels else {})}


def first_record(allocation: IPAllocation) -> GrantRecord | None:
    """What there is to record of an allocation that stays; None: nothing, or not by one who only uses it."""
    due = due_record(allocation)
    stays = allocation.status.phase is IPAllocationPhase.ALLOCATED and allocation.metadata.deletion_timestamp is None
    if not stays or due == recorded_grant(allocation) or is_from_another_life(allocation):
        return None
    return due


async def read_and_record(client: Client, allocations: Cache[IPAllocation], seen: IPAllocation) -> IPAllocation | None:
    """An allocation as the server has it now, its grant on record; None when it is gone. `seen` is how it was seen."""
    key, record = key_of(seen), first_record(seen)
    if record is not None:
        try:
            written = await client.patch(
                ALLOCATIONS, key.name, record_patch(seen, record), key.namespace, timeout=WRITE_TIMEOUT
            )
        except (Conflict, NotFound, Invalid, BadRequest, Forbidden):
            pass  # it is another by now, or gone; or what may be written here is up to others, too
        else:
            allocations.wrote(written)
            return written
    return await read(client, ALLOCATIONS, key)
