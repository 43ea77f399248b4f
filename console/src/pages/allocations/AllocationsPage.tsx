// All requests for addresses and what they hold, in all pools.
import { Group } from "@mantine/core";
import { useState } from "react";
import { useAllocations } from "../../api/allocations";
import { usePools } from "../../api/pools";
import type { AllocationItem } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { DataTable } from "../../components/table/DataTable";
import { FilterBox } from "../../components/table/FilterBox";
import { FilterSelect } from "../../components/table/FilterSelect";
import { NothingFits } from "../../components/table/NothingFits";
import { useListState } from "../../components/table/useListState";
import { ReleaseDialog } from "../pools/actions/ReleaseDialog";
import { useAllocationColumns } from "./useAllocationColumns";

const LIMIT = 50;
const STATES = ["held", "idle", "going back", "asked for", "refused", "released"];
const FILTERS = ["q", "pool", "tenant", "state", "type"] as const;

export function AllocationsPage() {
  const list = useListState("name");
  const [releasing, setReleasing] = useState<AllocationItem | null>(null);
  const pools = usePools({ limit: 1000 });
  const allocations = useAllocations({ ...list.filters(FILTERS), sort: list.sort, limit: LIMIT, cursor: list.cursor });
  const columns = useAllocationColumns(setReleasing);
  return (
    <Page title="Allocations" subtitle="Who asked for addresses, and what they hold: the record of every pool.">
      <Panel
        title="Allocations"
        flush
        actions={
          <Group gap="xs">
            <FilterBox list={list} label="Filter by name or address" />
            <FilterSelect
              list={list}
              name="pool"
              label="Any pool"
              options={pools.data?.items.map(({ name }) => name) ?? []}
            />
            {list.get("tenant") !== "" && <FilterSelect list={list} name="tenant" label="Any tenant" options={[]} />}
            <FilterSelect list={list} name="state" label="Any state" options={STATES} />
            <FilterSelect
              list={list}
              name="type"
              label="Any purpose"
              options={[
                { value: "nodes", label: "nodes" },
                { value: "loadbalancer", label: "load balancers" },
              ]}
            />
          </Group>
        }
      >
        <DataTable
          caption="Allocations"
          columns={columns}
          query={allocations}
          list={list}
          limit={LIMIT}
          keyOf={({ namespace, name }) => `${namespace}/${name}`}
          empty={
            list.has(FILTERS) ? (
              <NothingFits list={list} filters={FILTERS} title="No allocation is like that" />
            ) : (
              <EmptyState title="No tenant holds addresses yet">
                Tenants ask for theirs as soon as they are created.
              </EmptyState>
            )
          }
        />
      </Panel>
      {releasing && <ReleaseDialog allocation={releasing} onClose={() => setReleasing(null)} />}
    </Page>
  );
}
