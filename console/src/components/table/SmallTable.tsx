// A short table that is there as a whole: no paging, no sorting. On a phone its rows become cards. The roles are spelled
// out, as browsers take them from tables that are laid out in another way.
import { Table } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./SmallTable.module.css";

interface SmallTableProps {
  /** What the table is of, for screen readers. */
  caption: string;
  columns: (string | { title: string; align: "right" })[];
  rows: { key: string; cells: ReactNode[] }[];
}

export function SmallTable({ caption, columns, rows }: SmallTableProps) {
  const heads = columns.map((column) => (typeof column === "string" ? { title: column, align: undefined } : column));
  return (
    <div className={classes.frame}>
      <Table className={classes.table} role="table" verticalSpacing={6} horizontalSpacing="sm">
        <caption className="visually-hidden">{caption}</caption>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {heads.map(({ title, align }) => (
              <Table.Th key={title} role="columnheader" scope="col" ta={align}>
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">
          {rows.map(({ key, cells }) => (
            <Table.Tr key={key} role="row">
              {heads.map(({ title, align }, index) => (
                <Table.Td key={title} role="cell" ta={align} data-title={title}>
                  <div>{cells[index]}</div>
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
