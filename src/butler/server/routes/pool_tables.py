"""The parts of a pool in tables: its segments row by row, its free blocks, and what overlaps. Reads only."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Any, Literal

from litestar import Request, Response, Router, get
from litestar.params import QueryParameter

from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_address, range_cidr
from butler.reports.pool.free_blocks import Block, free_blocks
from butler.reports.pool.overlaps import overlaps
from butler.reports.pool.segments import PoolSegments, Segment
from butler.reports.pool.summary import Summary
from butler.server.cache import background_work, pool_summaries
from butler.server.models.common import FieldError
from butler.server.models.pools import FreeBlock, FreeBlocks, Overlaps, PoolOverlap, SegmentKind, SegmentRows
from butler.server.parameters import Cursor, Limit, Name, Namespace
from butler.server.presenters.common import range_of
from butler.server.presenters.segments import as_csv, row
from butler.server.problems import RequestRefused
from butler.server.responses import USUAL, Encoded, answer, packed
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool

MOST_BLOCKS = 1_000
KEPT_SIZES = 64
"""Answers about blocks up to this size are kept; others are seldom asked for twice."""
First = Annotated[str | None, QueryParameter(description="From this address on.", max_length=45)]
Last = Annotated[str | None, QueryParameter(description="Up to this address.", max_length=45)]
OfKind = Annotated[SegmentKind | None, QueryParameter(description="Of this kind.")]
Format = Annotated[
    Literal["json", "csv"] | None,
    QueryParameter(description="`csv` for a download of all rows; so does `Accept: text/csv`."),
]
Size = Annotated[int | None, QueryParameter(ge=1, le=1 << 32, description="With room for so many addresses.")]
Align = Annotated[bool, QueryParameter(description="Beginning at a multiple of the size.")]


@get("/pools/{namespace:str}/{name:str}/segments/rows", operation_id="listSegments")
async def list_segments(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    namespace: Namespace,
    name: Name,
    start: First = None,
    end: Last = None,
    kind: OfKind = None,
    format: Format = None,  # noqa: A002 (its name on the wire)
    limit: Limit = USUAL,
    cursor: Cursor = None,
) -> Response[SegmentRows]:
    """The segments of a pool, one in a row, in order of address."""
    pool = await need_pool(services, person, namespace, name)
    shown = (await pool_summaries.summary(services.state, pool)).segments
    wanted = _wanted(shown, start, end, kind)
    if format == "csv" or (format is None and request.headers.get("Accept", "").startswith("text/csv")):
        body: Any = await background_work.once(lambda: as_csv(wanted, shown.family))
        headers = {"Content-Disposition": f'attachment; filename="{name}-segments.csv"'}
        return Response(body, media_type="text/csv", headers=headers)
    begin = 0 if cursor is None else bisect_left(wanted, _address("cursor", cursor, shown), key=lambda item: item.first)
    page = [row(segment, shown.family) for segment in wanted[begin : begin + limit]]
    after = wanted[begin + limit] if begin + limit < len(wanted) else None
    following = address_text(after.first, shown.family) if after else None
    return answer(request, SegmentRows(items=page, total=len(wanted), next=following))


def _wanted(shown: PoolSegments, first: str | None, last: str | None, kind: str | None) -> list[Segment]:
    if shown.network is None:
        return []
    found = shown
    if first is not None or last is not None:
        begin = shown.network.first if first is None else _address("start", first, shown)
        end = shown.network.last if last is None else _address("end", last, shown)
        if begin > end:
            raise RequestRefused(
                422, "end: it lies before start: swap them", FieldError(field="end", message="before start")
            )
        found = shown.within(Range(begin, end))
    return [segment for segment in found.segments if kind is None or segment.kind == kind]


def _address(field: str, text: str, shown: PoolSegments) -> int:
    try:
        family, value = parse_address(text)
    except BadAddress as error:
        raise RequestRefused(422, f"{field}: {error}", FieldError(field=field, message=str(error))) from None
    if family is not shown.family:
        said = f"{text} is of another family than the pool's network {shown.cidr}"
        raise RequestRefused(422, f"{field}: {said}", FieldError(field=field, message=said))
    return value


@get("/pools/{namespace:str}/{name:str}/free", operation_id="getFreeBlocks")
async def get_free(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    namespace: Namespace,
    name: Name,
    size: Size = None,
    align: Align = False,
) -> Response[FreeBlocks]:
    """Where so many addresses would fit, and where Butler would put them."""
    pool = await need_pool(services, person, namespace, name)

    def compute(found: Summary) -> Encoded:
        return packed(_free(name, found, size, align=align))

    if size is None or size <= KEPT_SIZES:
        return answer(request, await pool_summaries.made(services.state, pool, ("free", size, align), compute))
    found = await pool_summaries.summary(services.state, pool)
    return answer(request, await background_work.once(lambda: compute(found)))


def _free(pool: str, summary: Summary, size: int | None, *, align: bool) -> FreeBlocks:
    family = summary.segments.family
    if summary.standing is None:
        return FreeBlocks(pool=pool, size=size, align=align, free=0, holes=0, largest=0, best_fit=None, blocks=[])
    found = free_blocks(summary.standing.free, size=size, align=align)
    return FreeBlocks(
        pool=pool,
        size=size,
        align=align,
        free=found.free,
        holes=found.holes,
        largest=found.largest,
        best_fit=range_of(found.best_fit, family) if found.best_fit else None,
        blocks=[_block(block, family) for block in found.blocks[:MOST_BLOCKS]],
    )


def _block(block: Block, family: Family) -> FreeBlock:
    return FreeBlock(
        start=address_text(block.hole.first, family),
        end=address_text(block.hole.last, family),
        count=block.hole.size,
        cidr=range_cidr(block.hole, family),
        fit_start=address_text(block.fit.first, family),
        fit_end=address_text(block.fit.last, family),
        best_fit=block.chosen,
    )


@get("/overlaps", operation_id="listOverlaps")
async def list_overlaps(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson
) -> Response[Overlaps]:
    """What no two may share, and do: pools that overlap, addresses held twice or outside their pool."""
    await services.permissions.need_pools(person)
    found = await background_work.of_all(
        services.state, "overlaps", lambda estate: overlaps(estate.pools, estate.allocations)
    )
    items = [
        PoolOverlap(
            trouble=finding.trouble.value,
            start=finding.start,
            end=finding.end,
            count=finding.count,
            subjects=list(finding.subjects),
            message=finding.message,
        )
        for finding in found
    ]
    return answer(request, Overlaps(items=items))


router = Router("/", route_handlers=[list_segments, get_free, list_overlaps], tags=["pools"])
