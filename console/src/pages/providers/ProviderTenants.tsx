// The tenants on a provider.
import { Anchor, Text } from "@mantine/core";
import { Link } from "react-router";
import { useSignedIn } from "../../api/session";
import { useTenants } from "../../api/tenants";
import type { ProviderItem, TenantItem } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { ObjectLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import { PhaseBadge } from "../../components/StatusBadge";
import { DataTable, type Column } from "../../components/table/DataTable";
import { useListState } from "../../components/table/useListState";
import { paths } from "../../paths";
import { count } from "../../words";

const LIMIT = 20;

const columns: Column<TenantItem>[] = [
  {
    title: "Tenant",
    sort: "name",
    cell: ({ namespace, name }) => (
      <>
        <ObjectLink link={{ kind: "tenant", namespace, name }} />
        <Text fz="xs" c="dimmed">
          {namespace}
        </Text>
      </>
    ),
  },
  { title: "Phase", sort: "phase", cell: ({ phase }) => <PhaseBadge phase={phase} plain /> },
  {
    title: "Nodes",
    sort: "nodeAddresses",
    align: "right",
    from: "narrow",
    cell: ({ nodeAddresses: held }) => (held === null ? "–" : count(held)),
  },
  {
    title: "Load balancers",
    sort: "loadBalancerAddresses",
    align: "right",
    from: "narrow",
    cell: ({ loadBalancerAddresses: held }) => (held === null ? "–" : count(held)),
  },
];

export function ProviderTenants({ provider }: { provider: ProviderItem }) {
  const { home } = useSignedIn();
  const list = useListState("name", "tenants-");
  // As the list of tenants names it: with a namespace only where that is not Butler's own.
  const named = provider.namespace === home ? provider.name : `${provider.namespace}/${provider.name}`;
  const tenants = useTenants({ provider: named, sort: list.sort, limit: LIMIT, cursor: list.cursor });
  return (
    <Panel
      title="Tenants on it"
      hint="With the addresses that they hold."
      flush
      actions={
        <Anchor component={Link} to={`${paths.tenants}?provider=${encodeURIComponent(named)}`} fz="sm">
          In the list of tenants
        </Anchor>
      }
    >
      <DataTable
        caption={`Tenants on ${provider.name}`}
        columns={columns}
        query={tenants}
        list={list}
        limit={LIMIT}
        keyOf={({ namespace, name }) => `${namespace}/${name}`}
        empty={<EmptyState title="No tenants yet" />}
      />
    </Panel>
  );
}
