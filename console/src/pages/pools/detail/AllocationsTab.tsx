// Allocations of the pool: who asked for what, and what they hold.
import { Group } from "@mantine/core";
import { useState } from "react";
import { useAllocations } from "../../../api/allocations";
import type { AllocationItem, PoolDetail } from "../../../api/types";
import { EmptyState } from "../../../components/EmptyState";
import { Panel } from "../../../components/Panel";
import { DataTable } from "../../../components/table/DataTable";
import { FilterBox } from "../../../components/table/FilterBox";
import { FilterSelect } from "../../../components/table/FilterSelect";
import { NothingFits } from "../../../components/table/NothingFits";
import { useListState } from "../../../components/table/useListState";
import { useAllocationColumns } from "../../allocations/useAllocationColumns";
import { ReleaseDialog } from "../actions/ReleaseDialog";

const LIMIT = 50;
const FILTERS = ["q", "phase", "type"] as const;

export function AllocationsTab({ detail }: { detail: PoolDetail }) {
  const list = useListState("start");
  const [releasing, setReleasing] = useState<AllocationItem | null>(null);
  const allocations = useAllocations({
    pool: detail.pool.name,
    ...list.filters(FILTERS),
    sort: list.sort,
    limit: LIMIT,
    cursor: list.cursor,
  });
  const columns = useAllocationColumns(setReleasing).filter(({ title }) => title !== "Pool");
  return (
    <Panel
      title="Allocations"
      flush
      actions={
        <Group gap="xs">
          <FilterBox list={list} label="Filter by name, tenant or address" />
          <FilterSelect
            list={list}
            name="phase"
            label="Phase"
            options={["Pending", "Allocated", "Released", "Failed"]}
          />
          <FilterSelect
            list={list}
            name="type"
            label="For"
            options={[
              { value: "nodes", label: "Nodes" },
              { value: "loadbalancer", label: "Load balancers" },
            ]}
          />
        </Group>
      }
    >
      <DataTable
        caption={`Allocations of ${detail.pool.name}`}
        columns={columns}
        query={allocations}
        list={list}
        limit={LIMIT}
        keyOf={(item) => `${item.namespace}/${item.name}`}
        empty={
          list.has(FILTERS) ? (
            <NothingFits list={list} filters={FILTERS} title="No allocation is like that" />
          ) : (
            <EmptyState title="No tenant has asked for addresses here yet" />
          )
        }
      />
      {releasing && <ReleaseDialog allocation={releasing} onClose={() => setReleasing(null)} />}
    </Panel>
  );
}
