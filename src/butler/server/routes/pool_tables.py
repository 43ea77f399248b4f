"""The parts of a pool in tables: its segments row by row, its free blocks, and what overlaps. Reads only."""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Any, Literal

from litestar import Request, Response, Router, get
from litestar.params import QueryParameter

from butler.api.objects import Key
from butler.ipam.addresses import BadAddress, Range, address_text, parse_address
from butler.reports.pool.segments import PoolSegments, Segment
from butler.server.cache import background_work, pool_summaries
from butler.server.cache.estate_overlaps import estate_overlaps
from butler.server.cursor import encode_cursor
from butler.server.list_page import USUAL, ListPage, PageEnd, end_of
from butler.server.models.common import FieldError
from butler.server.models.pools import FreeBlocks, Overlaps, PoolOverlap, SegmentKind, SegmentRows
from butler.server.parameters import Cursor, Limit, Name, Namespace
from butler.server.presenters.segments import as_csv, row
from butler.server.problems import RequestRefused
from butler.server.responses import respond
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool

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
    page = _page(wanted, shown, limit, cursor)
    return respond(request, SegmentRows(items=page.items, total=page.total, next=page.next))


def _page(wanted: list[Segment], shown: PoolSegments, limit: int, cursor: str | None) -> ListPage:
    """The segments are in order of address already: a page ends at an address."""
    after, begin = end_of(cursor), 0
    if after is not None:
        begin = bisect_right(wanted, _address("cursor", str(after.value), shown), key=lambda segment: segment.first)
    taken = wanted[begin : begin + limit]
    has_more = begin + limit < len(wanted)
    end = PageEnd(address_text(taken[-1].first, shown.family), Key("", shown.pool)) if has_more else None
    return ListPage([row(segment, shown.family) for segment in taken], len(wanted), encode_cursor(end) if end else None)


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

    return respond(request, await pool_summaries.free_blocks(services.state, pool, size, align=align))


@get("/overlaps", operation_id="listOverlaps")
async def list_overlaps(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson
) -> Response[Overlaps]:
    """What no two may share, and do: pools that overlap, addresses held twice or outside their pool."""
    await services.permissions.need_pools(person)
    items = [
        PoolOverlap(
            trouble=finding.trouble.value,
            start=finding.start,
            end=finding.end,
            count=finding.count,
            subjects=list(finding.subjects),
            message=finding.message,
        )
        for finding in await estate_overlaps(services.state)
    ]
    return respond(request, Overlaps(items=items))


router = Router("/", route_handlers=[list_segments, get_free, list_overlaps], tags=["pools"])
