// Conditions of an object, with whether each is good news: for CapacityWarning and its like, True is not.
import { Table, Text } from "@mantine/core";
import type { Condition } from "../api/types";
import { EmptyState } from "./EmptyState";
import { StatusBadge } from "./StatusBadge";
import { Time } from "./Time";

export function ConditionsTable({ conditions }: { conditions: Condition[] }) {
  if (conditions.length === 0) return <EmptyState title="No conditions yet" />;
  return (
    <Table.ScrollContainer minWidth={420} type="native">
      <Table verticalSpacing={6} horizontalSpacing="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Condition</Table.Th>
            <Table.Th>What it says</Table.Th>
            <Table.Th>Since</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {conditions.map((condition) => (
            <Table.Tr key={condition.type}>
              <Table.Td>
                <StatusBadge health={condition.health} plain>{`${condition.type}: ${condition.status}`}</StatusBadge>
              </Table.Td>
              <Table.Td>
                <Text fz="sm">{condition.message || condition.reason || "–"}</Text>
              </Table.Td>
              <Table.Td>
                <Time at={condition.since} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
