// What a tenant holds and asks for: one line for each allocation, and where in its pools that is.
import { Text } from "@mantine/core";
import { useSignedIn } from "../../../api/session";
import type { Block } from "../../../api/types";
import { AddressText } from "../../../components/AddressText";
import { AllocationState } from "../../../components/AllocationState";
import { EmptyState } from "../../../components/EmptyState";
import { ObjectLink } from "../../../components/ObjectLink";
import { Panel } from "../../../components/Panel";
import { PositionStrip } from "../../../components/PositionStrip";
import { Time } from "../../../components/Time";
import { SmallTable } from "../../../components/table/SmallTable";
import { count, typeInWords } from "../../../words";
import classes from "./detail.module.css";

export function BlocksPanel({ blocks, tenant }: { blocks: Block[] | null; tenant: string }) {
  const { home } = useSignedIn();
  if (blocks === null) {
    return (
      <Panel title="Addresses">
        <EmptyState title="You may not read allocations">What this tenant holds is not shown to you.</EmptyState>
      </Panel>
    );
  }
  if (blocks.length === 0) {
    return (
      <Panel title="Addresses">
        <EmptyState title="It holds no addresses">
          It has asked for none yet, or its provider leaves addresses to the cloud.
        </EmptyState>
      </Panel>
    );
  }
  const pools = [...new Set(blocks.map(({ pool }) => pool))];
  return (
    <Panel
      title="Addresses"
      hint="Every block that it holds or asks for. Growth came later, for more machines or Services."
      flush
    >
      <SmallTable
        caption={`Address blocks of ${tenant}`}
        columns={["Allocation", "For", "State", "Addresses", { title: "Count", align: "right" }, "Since"]}
        rows={blocks.map((block) => ({ key: block.allocation, cells: cellsOf(block, home) }))}
      />
      <div className={classes.strips}>
        {pools.map((pool) => (
          <PositionStrip key={pool} pool={pool} blocks={blocks.filter((block) => block.pool === pool)} />
        ))}
      </div>
    </Panel>
  );
}

function cellsOf(block: Block, home: string) {
  return [
    <>
      <ObjectLink link={{ kind: "allocation", namespace: home, name: block.allocation }} />
      <Text fz="xs" c="dimmed">
        {[block.growth ? "growth" : "initial", block.pinned && "hand-picked"].filter(Boolean).join(", ")}
      </Text>
    </>,
    typeInWords(block.type),
    <>
      <AllocationState state={block.state} plain />
      {block.idleSince && (
        <Text fz="xs" c="dimmed">
          <Time at={block.idleSince} />
        </Text>
      )}
      {block.why && !block.range && (
        <Text fz="xs" c="dimmed">
          {block.why}
        </Text>
      )}
    </>,
    <div key="addresses" className={classes.stacked}>
      <AddressText range={block.range} />
      <ObjectLink link={{ kind: "pool", namespace: home, name: block.pool }} />
    </div>,
    block.range ? count(block.range.count) : `${count(block.requested)} wanted`,
    <Time key="since" at={block.since} />,
  ];
}
