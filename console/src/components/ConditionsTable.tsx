// Conditions of an object, with whether each is good news: for CapacityWarning and its like, True is not.
import { Text } from "@mantine/core";
import type { Condition } from "../api/types";
import { EmptyState } from "./EmptyState";
import { StatusBadge } from "./StatusBadge";
import { SmallTable } from "./table/SmallTable";
import { Time } from "./Time";

export function ConditionsTable({ conditions }: { conditions: Condition[] }) {
  if (conditions.length === 0) return <EmptyState title="No conditions yet" />;
  return (
    <SmallTable
      caption="Conditions"
      columns={["Condition", "What it says", "Since"]}
      rows={conditions.map(({ type, status, health, message, reason, since }) => ({
        key: type,
        cells: [
          <StatusBadge key="condition" health={health} plain>{`${type}: ${status}`}</StatusBadge>,
          <Text key="message" fz="sm">
            {message || reason || "–"}
          </Text>,
          <Time key="since" at={since} />,
        ],
      }))}
    />
  );
}
