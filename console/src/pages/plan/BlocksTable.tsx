// Requests and what each would get.
import { Table, Text } from "@mantine/core";
import type { PlannedBlock } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { StatusBadge } from "../../components/StatusBadge";
import { SmallTable } from "../../components/table/SmallTable";
import { count, typeInWords } from "../../words";

export function BlocksTable({ blocks, caption }: { blocks: PlannedBlock[]; caption: string }) {
  return (
    <SmallTable caption={caption} columns={["Request", "For", { title: "Count", align: "right" }, "Gets"]} minWidth={460}>
      {blocks.map((block) => (
        <Table.Tr key={block.name}>
          <Table.Td>
            {block.name}
            <Text fz="xs" c="dimmed">
              {[block.tenant, block.pool].filter(Boolean).join(", ")}
            </Text>
          </Table.Td>
          <Table.Td>{typeInWords(block.type)}</Table.Td>
          <Table.Td ta="right">{count(block.count)}</Table.Td>
          <Table.Td>
            {block.range ? <AddressText range={block.range} /> : <Refused block={block} />}
          </Table.Td>
        </Table.Tr>
      ))}
    </SmallTable>
  );
}

function Refused({ block: { message } }: { block: PlannedBlock }) {
  return (
    <>
      <StatusBadge health="critical" plain>
        refused
      </StatusBadge>
      <Text fz="xs">{message}</Text>
    </>
  );
}
