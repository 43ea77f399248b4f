"""Rows of files: what is written is read back, and everything that makes no sense is told with its line."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.ipallocation import IPAllocationType
from butler.api.objects import Key
from butler.ipam.addresses import Family, address_text
from butler.reports.exchange.rows import (
    FIELDS,
    MOST_ROWS,
    Contents,
    UnreadableFile,
    document,
    in_order,
    read_csv,
    read_document,
    record,
)
from unit.reports.exchange_estate import holder, shown

HEADER = "pool,tenant_namespace,tenant,type,start,end,count,phase,allocated_at,name\n"


def as_csv(*allocations: object) -> str:
    made = io.StringIO()
    writer = csv.writer(made)
    writer.writerow(FIELDS)
    for allocation in allocations:
        writer.writerow(["" if cell is None else cell for cell in record(allocation).values()])  # type: ignore[arg-type]
    return made.getvalue()


def told(contents: Contents) -> list[str]:
    return [f"{bad_row.where}: {bad_row.message}" for bad_row in contents.bad]


def test_the_fields_and_their_order_never_change() -> None:
    assert ",".join(FIELDS) + "\n" == HEADER
    found = record(holder("web-lb", "10.40.0.20-10.40.0.21", type_="loadbalancer", allocatedAt="2027-01-02T03:04:05Z"))
    assert tuple(found) == FIELDS
    assert list(found.values()) == [
        "rack", "t", "web", "loadbalancer", "10.40.0.20", "10.40.0.21", 2,
        "Allocated", "2027-01-02T03:04:05Z", "web-lb",
    ]  # fmt: skip


def test_an_allocation_without_addresses_has_none_in_its_row() -> None:
    assert record(holder("web", phase="Pending"))["start"] is None


def test_rows_are_in_order_of_pool_and_address() -> None:
    found = [
        holder("b", "10.40.0.30"),
        holder("z", phase="Failed"),
        holder("c", "10.9.0.1", of="other"),
        holder("a", "10.40.0.4"),
    ]
    assert [allocation.metadata.name for allocation in in_order(found)] == ["c", "a", "b", "z"]


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40), st.sampled_from(list(IPAllocationType))), max_size=20)
)
def test_what_is_exported_is_read_back(blocks: list[tuple[int, int, IPAllocationType]]) -> None:
    at, made = 0x0A280000, []
    for number, (gap, size, type_) in enumerate(blocks):
        at += gap
        ends = f"{address_text(at, Family.V4)}-{address_text(at + size - 1, Family.V4)}"
        made.append(holder(f"a{number}", ends, tenant=f"ns/t{number}", type_=str(type_)))
        at += size
    if not made:
        return
    for found in (read_csv(as_csv(*made)), read_document(json.loads(json.dumps(document(made))))):
        assert not found.bad
        assert not found.passed_over
        assert [(row.name, row.tenant, row.type, row.pool, row.addresses) for row in found.rows] == [
            (each.metadata.name, Key("ns", f"t{number}"), each.spec.type, "rack", found.rows[number].addresses)
            for number, each in enumerate(made)
        ]
        assert [shown(row.addresses).partition("-")[0] for row in found.rows] == [
            allocation.status.start_address for allocation in made
        ]


def test_rows_that_hold_nothing_are_passed_over() -> None:
    found = read_csv(as_csv(holder("a", "10.40.0.4", phase="Released"), holder("b", phase="Pending")))
    assert [bad_row.message for bad_row in found.passed_over] == [
        "it is Released and holds nothing",
        "it is Pending and holds nothing",
    ]


def test_few_columns_are_enough_and_lines_are_counted_as_an_editor_does() -> None:
    found = read_csv('\ntenant_namespace,tenant,type,start\n\n"t",web,nodes,10.40.0.4\r\nt,web,nodes,10.40.0.6\n')
    assert [(row.where, shown(row.addresses), row.pool, row.name) for row in found.rows] == [
        ("line 4", "10.40.0.4", "", ""),
        ("line 5", "10.40.0.6", "", ""),
    ]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (",t,web,nodes,10.40.0.300", "'10.40.0.300' is not an IP address"),
        (",t,web,nodes,010.40.0.30", "with no leading zeros"),
        (",t,web,nodes,10.40.0.9,10.40.0.1", "10.40.0.1 comes before 10.40.0.9: swap the two"),
        (",t,web,nodes,fe80::1", "IPv6 address: pools hand out IPv4 only"),
        (",t,web,nodes,10.40.0.1,fe80::1", "addresses of two families"),
        (",t,web,nodes,10.0.0.0,10.1.0.0", "asks for 65537 addresses, but one allocation may hold at most 65536"),
        (",t,web,pods,10.40.0.1", "type 'pods' is not known: write nodes or loadbalancer"),
        (",t,,nodes,10.40.0.1", "it has no tenant"),
        (",t,web,nodes,", "it has no start"),
        (",T_1,web,nodes,10.40.0.1", "tenant_namespace 'T_1' is no name in Kubernetes"),
        (",t,we b,nodes,10.40.0.1", "tenant 'we b' is no name in Kubernetes"),
        ("../x,t,web,nodes,10.40.0.1", "pool '../x' is no name in Kubernetes"),
        (",t,web,nodes,10.40.0.1,,,,,Web", "name 'Web' is no name in Kubernetes"),
        (",t,web,nodes,10.40.0.1,10.40.0.2,3", "count says '3', but from start to end there are 2"),
        (",t,web,nodes,10.40.0.1,,,Done", "phase 'Done' is not known"),
        (",t,web,nodes,10.40.0.1,,,,,,x", "it has 11 cells, and the header has 10"),
    ],
)
def test_a_row_that_makes_no_sense_is_told_with_its_line(row: str, complaint: str) -> None:
    found = read_csv(f"{HEADER},t,ok,nodes,10.40.9.9\n{row}\n")
    assert [item.tenant.name for item in found.rows] == ["ok"]
    assert len(told(found)) == 1
    assert told(found)[0].startswith("line 3: ")
    assert complaint in told(found)[0]


def test_everything_that_is_wrong_is_told_at_once_in_order() -> None:
    found = read_csv(
        f"{HEADER},t,a,nodes,10.40.0.1,10.40.0.9\n,t,b,nodes,10.40.0.5\n,t,b,nodes,x\n,t,a,nodes,10.40.0.1,10.40.0.9\n"
    )
    assert [bad_row.where for bad_row in found.bad] == ["line 3", "line 4", "line 5"]
    assert "10.40.0.5 is in line 2 too, as nodes of t/a" in told(found)[0]
    assert told(found)[2] == "line 5: it says the same as line 2: remove one of the two"


def test_a_name_can_be_given_once() -> None:
    found = read_csv(f"{HEADER},t,a,nodes,10.40.0.1,,,,,one\n,t,b,nodes,10.40.0.5,,,,,one\n")
    assert told(found) == ["line 3: its name one is that of line 2, too: give it another"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "it is empty"),
        ("\n \n", "it is empty"),
        (HEADER, "it has a header and no rows"),
        ("pool,tenant,type,start\n", "its header has no tenant_namespace"),
        ("tenant_namespace,tenant,type,strat\n", "column 'strat' is not known (is start meant?)"),
        ("tenant_namespace,tenant,tenant,type,start\n", "column tenant is there twice"),
        ("tenant_namespace;tenant;type;start\n", "separate them by commas"),
        (f'{HEADER}"', "line 2 is no CSV"),
        (f"{HEADER},t,{'x' * 200_000}", "line 2 is no CSV"),
        (HEADER + ",t,web,nodes,10.40.0.1\n" * (MOST_ROWS + 1), "more than 10,000 rows: split it"),
    ],
)
def test_a_file_that_is_no_list_of_allocations_is_refused_whole(text: str, complaint: str) -> None:
    with pytest.raises(UnreadableFile) as refusal:
        read_csv(text)
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, "no list of allocations"),
        ({"allocations": {}}, "no list of allocations"),
        ([], "it is empty"),
        ({"format": "netbox/v3", "allocations": [{}]}, "its format is 'netbox/v3': this version reads butler-alloc"),
    ],
)
def test_a_document_without_rows_is_refused_whole(value: object, complaint: str) -> None:
    with pytest.raises(UnreadableFile, match=complaint):
        read_document(value)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (7, "7 is no allocation"),
        ({"nmae": "x"}, "field 'nmae' is not known (is name meant?)"),
        ({"tenantNamespace": "t", "tenant": "web", "type": "nodes", "start": 10.4}, "start is 10.4, which is no text"),
        ({"tenant": ["a"] * 9}, "tenant is a list, which is no text"),
        ({"tenant": "web", "type": "nodes", "start": "10.40.0.1"}, "it has no tenant_namespace"),
    ],
)
def test_an_entry_that_makes_no_sense_is_told_with_its_number(entry: object, complaint: str) -> None:
    (found,) = told(read_document([entry]))
    assert found.startswith("entry 1: ")
    assert complaint in found
