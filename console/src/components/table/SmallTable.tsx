// A short table that is there as a whole: no paging, no sorting. It scrolls inside its panel where it is too wide.
import { Table } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./DataTable.module.css";

interface SmallTableProps {
  /** What the table is of, for screen readers. */
  caption: string;
  columns: (string | { title: string; align: "right" })[];
  /** From which width on it has to scroll. */
  minWidth?: number;
  /** Rows, as `Table.Tr`. */
  children: ReactNode;
}

export function SmallTable({ caption, columns, minWidth = 460, children }: SmallTableProps) {
  return (
    <Table.ScrollContainer minWidth={minWidth} type="native">
      <Table className={classes.table} verticalSpacing={6} horizontalSpacing="sm">
        <caption className="visually-hidden">{caption}</caption>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => {
              const { title, align } = typeof column === "string" ? { title: column, align: undefined } : column;
              return (
                <Table.Th key={title} scope="col" ta={align}>
                  {title}
                </Table.Th>
              );
            })}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
