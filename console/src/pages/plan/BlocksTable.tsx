// Requests and what each would get.
import { Table, Text } from "@mantine/core";
import type { PlannedBlock } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { StatusBadge } from "../../components/StatusBadge";
import { count, typeInWords } from "../../words";

export function BlocksTable({ blocks, caption }: { blocks: PlannedBlock[]; caption: string }) {
  return (
    <Table.ScrollContainer minWidth={460} type="native">
      <Table verticalSpacing={6} horizontalSpacing="sm">
        <caption className="visually-hidden">{caption}</caption>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Request</Table.Th>
            <Table.Th>For</Table.Th>
            <Table.Th ta="right">Count</Table.Th>
            <Table.Th>Gets</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
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
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Refused({ block: { reason, message } }: { block: PlannedBlock }) {
  return (
    <>
      <StatusBadge health="critical" plain>
        {reason || "refused"}
      </StatusBadge>
      <Text fz="xs">{message}</Text>
    </>
  );
}
