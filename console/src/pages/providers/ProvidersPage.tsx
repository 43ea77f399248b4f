// Where tenants go: how addresses are handed out there, and how many more tenants fit.
import { Text } from "@mantine/core";
import { useProviders } from "../../api/providers";
import type { ProviderItem } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { ObjectLink } from "../../components/ObjectLink";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { DataTable, type Column } from "../../components/table/DataTable";
import { FilterBox } from "../../components/table/FilterBox";
import { NothingFits } from "../../components/table/NothingFits";
import { useListState } from "../../components/table/useListState";
import { count } from "../../words";
import classes from "./providers.module.css";
import { modeInWords } from "./words";

const LIMIT = 50;
const FILTERS = ["q"];

const columns: Column<ProviderItem>[] = [
  {
    title: "Provider",
    sort: "name",
    cell: ({ namespace, name, provider }) => (
      <>
        <ObjectLink link={{ kind: "provider", namespace, name }} />
        <Text fz="xs" c="dimmed">
          {provider}
        </Text>
      </>
    ),
  },
  {
    title: "State",
    sort: "ready",
    cell: ({ ready, problem }) => (
      <>
        <StatusBadge health={ready ? "ok" : "warning"} plain>
          {ready ? "ready" : "not ready"}
        </StatusBadge>
        {problem && (
          <Text fz="xs" c="dimmed" lineClamp={2} title={problem}>
            {problem}
          </Text>
        )}
      </>
    ),
  },
  { title: "Addresses", sort: "mode", from: "medium", cell: (provider) => modeInWords(provider) },
  {
    title: "Pools, in order",
    from: "medium",
    cell: ({ namespace, pools }) =>
      pools.length === 0 ? (
        "–"
      ) : (
        <ol className={classes.pools}>
          {pools.map((pool) => (
            <li key={pool}>
              <ObjectLink link={{ kind: "pool", namespace, name: pool }} />
            </li>
          ))}
        </ol>
      ),
  },
  { title: "Tenants", sort: "tenants", align: "right", from: "narrow", cell: ({ tenants }) => count(tenants) },
  {
    title: "Free addresses",
    sort: "available",
    align: "right",
    from: "medium",
    cell: ({ available }) => (available === null ? "–" : count(available)),
  },
  {
    title: "Room for",
    sort: "estimatedTenants",
    align: "right",
    cell: ({ estimatedTenants }) =>
      estimatedTenants === null ? (
        <span title="It cannot be told">–</span>
      ) : estimatedTenants === 0 ? (
        <StatusBadge health="critical" plain>
          no more
        </StatusBadge>
      ) : (
        `${count(estimatedTenants)} more`
      ),
  },
];

export function ProvidersPage() {
  const list = useListState("name");
  const providers = useProviders({ q: list.get("q") || undefined, sort: list.sort, limit: LIMIT, cursor: list.cursor });
  return (
    <Page
      title="Providers"
      subtitle="Where tenants go: whose machines they get, and from which pools their addresses come."
    >
      <Panel title="Providers" flush actions={<FilterBox list={list} label="Filter by name" />}>
        <DataTable
          caption="Providers"
          columns={columns}
          query={providers}
          list={list}
          limit={LIMIT}
          keyOf={({ namespace, name }) => `${namespace}/${name}`}
          empty={
            list.has(FILTERS) ? (
              <NothingFits list={list} filters={FILTERS} title="No provider is called that" />
            ) : (
              <EmptyState title="No providers yet">
                Tenants need one. Apply a ProviderConfig with kubectl; examples/eight-tenants/provider.yaml is a first
                one.
              </EmptyState>
            )
          }
        />
      </Panel>
    </Page>
  );
}
