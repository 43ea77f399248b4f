// The pools of a provider in the order in which they are tried, and how full each is.
import { Table, Text } from "@mantine/core";
import { UsageMeter } from "../../address-space/UsageMeter";
import { usePools } from "../../api/pools";
import type { ProviderDetail } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { ObjectLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { SmallTable } from "../../components/table/SmallTable";

export function ProviderPools({ detail: { provider, pools } }: { detail: ProviderDetail }) {
  const known = usePools({ limit: 1000 });
  if (pools.length === 0) {
    return (
      <Panel title="Pools">
        <EmptyState title="No pools">
          {provider.mode === "cloud" ? "The cloud gives its tenants their addresses." : "Its tenants have nowhere to get addresses from."}
        </EmptyState>
      </Panel>
    );
  }
  return (
    <Panel title="Pools" hint="Tried in this order: the next one is asked when the one before has no room." flush>
      <SmallTable caption={`Pools of ${provider.name}`} columns={[{ title: "Order", align: "right" }, "Pool", "For", "Gateway", "Held"]} minWidth={480}>
        {pools.map(({ name, priority, purpose, exists, gateway }, index) => {
          const pool = known.data?.items.find((item) => item.name === name && item.namespace === provider.namespace);
          return (
            <Table.Tr key={name}>
              <Table.Td ta="right" title={`priority ${priority}`}>
                {index + 1}
              </Table.Td>
              <Table.Td>
                {exists ? <ObjectLink link={{ kind: "pool", namespace: provider.namespace, name }} /> : name}
                {pool && (
                  <Text fz="xs" c="dimmed" className="mono">
                    {pool.cidr}
                  </Text>
                )}
                {!exists && (
                  <div>
                    <StatusBadge health="critical" plain>
                      there is no such pool
                    </StatusBadge>
                  </div>
                )}
              </Table.Td>
              <Table.Td>{purpose}</Table.Td>
              <Table.Td className="mono">{gateway || "–"}</Table.Td>
              <Table.Td>
                {pool?.allocated != null && pool.total != null ? (
                  <UsageMeter allocated={pool.allocated} total={pool.total} tier={pool.tier} />
                ) : (
                  "–"
                )}
              </Table.Td>
            </Table.Tr>
          );
        })}
      </SmallTable>
    </Panel>
  );
}
