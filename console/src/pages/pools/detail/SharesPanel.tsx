// Who holds most.
import { Table } from "@mantine/core";
import type { PoolDetail } from "../../../api/types";
import { EmptyState } from "../../../components/EmptyState";
import { TenantLink } from "../../../components/ObjectLink";
import { Panel } from "../../../components/Panel";
import { count, percent } from "../../../words";

export function SharesPanel({ detail }: { detail: PoolDetail }) {
  const total = detail.pool.total ?? 0;
  return (
    <Panel title="Who holds most" hint="At most twenty tenants">
      {detail.shares.length === 0 ? (
        <EmptyState title="No tenant holds addresses here" />
      ) : (
        <Table verticalSpacing={4} horizontalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Tenant</Table.Th>
              <Table.Th ta="right">Addresses</Table.Th>
              <Table.Th ta="right">Of the pool</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {detail.shares.map((share) => (
              <Table.Tr key={share.tenant}>
                <Table.Td>
                  <TenantLink tenant={share.tenant} />
                </Table.Td>
                <Table.Td ta="right">{count(share.addresses)}</Table.Td>
                <Table.Td ta="right">{percent(total > 0 ? (100 * share.addresses) / total : null)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Panel>
  );
}
