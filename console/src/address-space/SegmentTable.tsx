// Everything that the map shows, as text: for screen readers, for copying, and for those who like tables.
import { Button, Group, Table } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { IconDownload } from "@tabler/icons-react";
import { useState } from "react";
import { downloadCsv } from "../api/download";
import { useSegmentRows } from "../api/pools";
import type { SegmentRow } from "../api/types";
import { EmptyState } from "../components/EmptyState";
import { TenantLink } from "../components/ObjectLink";
import { Loaded } from "../components/Loaded";
import { ProblemAlert } from "../components/ProblemAlert";
import { Pager } from "../components/table/Pager";
import { count } from "../words";
import { KIND_WORDS } from "./describe";

const LIMIT = 50;

export function SegmentTable({ namespace, name }: { namespace: string; name: string }) {
  const [trail, setTrail] = useState<string[]>([]);
  const rows = useSegmentRows(namespace, name, { limit: LIMIT, cursor: trail.at(-1) });
  const csv = useMutation({
    mutationFn: () =>
      downloadCsv(
        `/api/v1/pools/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/segments/rows`,
        `${name}.csv`,
      ),
  });
  return (
    <Loaded query={rows}>
      {(page) =>
        page.items.length === 0 ? (
          <EmptyState title="This pool has no addresses" />
        ) : (
          <>
            <Table.ScrollContainer minWidth={560} type="native">
              <Table verticalSpacing={4} horizontalSpacing="sm">
                <caption className="visually-hidden">Segments of the pool, in order of address</caption>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Addresses</Table.Th>
                    <Table.Th ta="right">Count</Table.Th>
                    <Table.Th>State</Table.Th>
                    <Table.Th>Whose</Table.Th>
                    <Table.Th>Allocation or purpose</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {page.items.map((row) => (
                    <Row key={row.start} row={row} />
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
            <Pager
              page={page}
              limit={LIMIT}
              list={{
                page: trail.length,
                toNext: (cursor) => setTrail([...trail, cursor]),
                toPrevious: () => setTrail(trail.slice(0, -1)),
              }}
            />
            {csv.isError && <ProblemAlert error={csv.error} />}
            <Group justify="flex-end">
              <Button
                variant="default"
                leftSection={<IconDownload size={14} />}
                loading={csv.isPending}
                onClick={() => csv.mutate()}
              >
                All of it as CSV
              </Button>
            </Group>
          </>
        )
      }
    </Loaded>
  );
}

function Row({ row }: { row: SegmentRow }) {
  return (
    <Table.Tr>
      <Table.Td className="mono">
        {row.start === row.end ? row.start : `${row.start}–${row.end}`}
        {row.cidr !== null && row.count > 1 && ` (${row.cidr})`}
      </Table.Td>
      <Table.Td ta="right">{count(row.count)}</Table.Td>
      <Table.Td>
        {KIND_WORDS[row.kind]}
        {row.stranded && ", not handed out any more"}
        {row.heldBy > 1 && `, by ${row.heldBy} at once`}
      </Table.Td>
      <Table.Td>{row.tenant && <TenantLink tenant={row.tenant} />}</Table.Td>
      <Table.Td>{row.allocation || row.description}</Table.Td>
    </Table.Tr>
  );
}
