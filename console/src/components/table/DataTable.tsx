// A table of objects: sorted and paged by the server, dense, and readable on a phone by leaving out columns.
import { Skeleton, Table, UnstyledButton } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { IconArrowDown, IconArrowUp, IconSelector } from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { Page } from "../../api/types";
import { ProblemAlert } from "../ProblemAlert";
import classes from "./DataTable.module.css";
import { Pager } from "./Pager";
import type { ListState } from "./useListState";

export interface Column<Item> {
  title: string;
  /** The field that the server sorts by; none for a column that cannot be sorted. */
  sort?: string;
  align?: "right";
  /** From which width of the table on it is shown; always, unless told. */
  from?: "narrow" | "medium" | "wide";
  /** Hides the title on the screen, for columns of buttons. */
  silent?: boolean;
  cell: (item: Item) => ReactNode;
}

interface DataTableProps<Item> {
  /** What the table is of, for screen readers. */
  caption: string;
  columns: Column<Item>[];
  query: UseQueryResult<Page<Item>>;
  list: ListState;
  limit: number;
  keyOf: (item: Item) => string;
  /** Shown in place of an empty table. */
  empty: ReactNode;
}

export function DataTable<Item>({ caption, columns, query, list, limit, keyOf, empty }: DataTableProps<Item>) {
  const { data, isError, error } = query;
  if (isError && !data) {
    return (
      <div className={classes.aside}>
        <ProblemAlert error={error} onRetry={() => void query.refetch()} />
      </div>
    );
  }
  if (data?.items.length === 0 && list.page === 0) return <>{empty}</>;
  return (
    <>
      <div className={classes.frame} aria-busy={query.isPending || query.isPlaceholderData}>
        <Table className={classes.table} highlightOnHover verticalSpacing={6} horizontalSpacing="sm">
          <caption className="visually-hidden">{caption}</caption>
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <HeadCell key={column.title} column={column} list={list} />
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody data-stale={query.isPlaceholderData || undefined} className={classes.body}>
            {data
              ? data.items.map((item) => (
                  <Table.Tr key={keyOf(item)}>
                    {columns.map((column) => (
                      <Table.Td key={column.title} data-from={column.from} ta={column.align}>
                        {column.cell(item)}
                      </Table.Td>
                    ))}
                  </Table.Tr>
                ))
              : skeletonRows(columns)}
          </Table.Tbody>
        </Table>
      </div>
      {data && <Pager page={data} list={list} limit={limit} />}
    </>
  );
}

function HeadCell<Item>({ column, list }: { column: Column<Item>; list: ListState }) {
  const { title, sort, align, from } = column;
  if (sort === undefined) {
    return (
      <Table.Th data-from={from} ta={align} scope="col">
        {column.silent ? <span className="visually-hidden">{title}</span> : title}
      </Table.Th>
    );
  }
  const direction = list.sort === sort ? "ascending" : list.sort === `-${sort}` ? "descending" : "none";
  const Arrow = { ascending: IconArrowUp, descending: IconArrowDown, none: IconSelector }[direction];
  return (
    <Table.Th data-from={from} ta={align} scope="col" aria-sort={direction}>
      <UnstyledButton
        className={classes.sort}
        data-active={direction !== "none" || undefined}
        onClick={() => list.set({ sort: direction === "ascending" ? `-${sort}` : sort })}
      >
        {title}
        <Arrow size={13} stroke={1.8} aria-hidden />
      </UnstyledButton>
    </Table.Th>
  );
}

function skeletonRows<Item>(columns: Column<Item>[]) {
  return Array.from({ length: 6 }, (_, row) => (
    <Table.Tr key={row}>
      {columns.map((column) => (
        <Table.Td key={column.title} data-from={column.from}>
          <Skeleton height={12} my={4} radius="sm" />
        </Table.Td>
      ))}
    </Table.Tr>
  ));
}
