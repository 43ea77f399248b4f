// Requests and what each would get.
import { Text } from "@mantine/core";
import type { PlannedBlock } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { StatusBadge } from "../../components/StatusBadge";
import { SmallTable } from "../../components/table/SmallTable";
import { count, typeInWords } from "../../words";

const COLUMNS = ["Request", "For", { title: "Count", align: "right" as const }, "Gets"];

export function BlocksTable({ blocks, caption }: { blocks: PlannedBlock[]; caption: string }) {
  return (
    <SmallTable
      caption={caption}
      columns={COLUMNS}
      rows={blocks.map((block) => ({ key: block.name, cells: cellsOf(block) }))}
    />
  );
}

function cellsOf({ name, tenant, pool, type, count: size, range, message }: PlannedBlock) {
  return [
    <>
      {name}
      <Text fz="xs" c="dimmed">
        {[tenant, pool].filter(Boolean).join(", ")}
      </Text>
    </>,
    typeInWords(type),
    count(size),
    range ? (
      <AddressText range={range} />
    ) : (
      <>
        <StatusBadge health="critical" plain>
          refused
        </StatusBadge>
        <Text fz="xs">{message}</Text>
      </>
    ),
  ];
}
