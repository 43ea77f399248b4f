// The pools of a provider in the order in which they are tried, and how full each is.
import { Text } from "@mantine/core";
import { UsageMeter } from "../../address-space/UsageMeter";
import { usePools } from "../../api/pools";
import type { PoolItem, ProviderDetail } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { ObjectLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { SmallTable } from "../../components/table/SmallTable";

const COLUMNS = ["Order", "Pool", "For", "Gateway", "Held"];

export function ProviderPools({ detail: { provider, pools } }: { detail: ProviderDetail }) {
  const known = usePools({ limit: 1000 });
  if (pools.length === 0) {
    return (
      <Panel title="Pools">
        <EmptyState title="No pools">
          {provider.mode === "cloud"
            ? "The cloud gives its tenants their addresses."
            : "Its tenants have nowhere to get addresses from."}
        </EmptyState>
      </Panel>
    );
  }
  const itemOf = (name: string) =>
    known.data?.items.find((item) => item.name === name && item.namespace === provider.namespace);
  return (
    <Panel title="Pools" hint="Tried in this order: the next one is asked when the one before has no room." flush>
      <SmallTable
        caption={`Pools of ${provider.name}`}
        columns={COLUMNS}
        rows={pools.map((pool, index) => ({
          key: pool.name,
          cells: cellsOf(pool, index + 1, provider.namespace, itemOf(pool.name)),
        }))}
      />
    </Panel>
  );
}

function cellsOf(pool: ProviderDetail["pools"][number], place: number, namespace: string, item: PoolItem | undefined) {
  const { name, priority, purpose, exists, gateway } = pool;
  return [
    <span key="order" title={`priority ${priority}`}>
      {place}
    </span>,
    <>
      {exists ? <ObjectLink link={{ kind: "pool", namespace, name }} /> : name}
      {item && (
        <Text fz="xs" c="dimmed" className="mono">
          {item.cidr}
        </Text>
      )}
      {!exists && (
        <div>
          <StatusBadge health="critical" plain>
            there is no such pool
          </StatusBadge>
        </div>
      )}
    </>,
    purpose,
    <span key="gateway" className="mono">
      {gateway || "–"}
    </span>,
    item?.allocated != null && item.total != null ? (
      <UsageMeter allocated={item.allocated} total={item.total} tier={item.tier} />
    ) : (
      "–"
    ),
  ];
}
