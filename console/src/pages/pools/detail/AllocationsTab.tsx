// Allocations of the pool: who asked for what, and what they hold.
import { Group, Text } from "@mantine/core";
import { useState } from "react";
import { useAllocations } from "../../../api/allocations";
import { useSignedIn } from "../../../api/session";
import type { AllocationItem, PoolDetail } from "../../../api/types";
import { AddressText } from "../../../components/AddressText";
import { AllocationState } from "../../../components/AllocationState";
import { EmptyState } from "../../../components/EmptyState";
import { GuardedButton, unless } from "../../../components/GuardedButton";
import { ObjectLink, TenantLink } from "../../../components/ObjectLink";
import { Panel } from "../../../components/Panel";
import { DataTable, type Column } from "../../../components/table/DataTable";
import { FilterBox } from "../../../components/table/FilterBox";
import { FilterSelect } from "../../../components/table/FilterSelect";
import { useListState } from "../../../components/table/useListState";
import { Time } from "../../../components/Time";
import { count, typeInWords } from "../../../words";
import { ReleaseDialog } from "../actions/ReleaseDialog";

const LIMIT = 50;

export function AllocationsTab({ detail }: { detail: PoolDetail }) {
  const list = useListState("start");
  const [releasing, setReleasing] = useState<AllocationItem | null>(null);
  const allocations = useAllocations({
    pool: detail.pool.name,
    q: list.get("q") || undefined,
    phase: list.get("phase") || undefined,
    type: list.get("type") || undefined,
    sort: list.sort,
    limit: LIMIT,
    cursor: list.cursor,
  });
  const filtered = list.get("q") !== "" || list.get("phase") !== "" || list.get("type") !== "";
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
        columns={useColumns(setReleasing)}
        query={allocations}
        list={list}
        limit={LIMIT}
        keyOf={(item) => `${item.namespace}/${item.name}`}
        empty={
          <EmptyState title={filtered ? "No allocation fits these filters" : "Nobody asked for addresses here yet"} />
        }
      />
      {releasing && <ReleaseDialog allocation={releasing} onClose={() => setReleasing(null)} />}
    </Panel>
  );
}

function useColumns(onRelease: (item: AllocationItem) => void): Column<AllocationItem>[] {
  const { permissions } = useSignedIn();
  return [
    {
      title: "Allocation",
      sort: "name",
      cell: (item) => (
        <>
          <ObjectLink link={{ kind: "allocation", namespace: item.namespace, name: item.name }} />
          {item.start === null && item.message && (
            <Text fz="xs" c="dimmed" lineClamp={2}>
              {item.message}
            </Text>
          )}
        </>
      ),
    },
    {
      title: "Addresses",
      sort: "start",
      cell: (item) =>
        item.start !== null && item.end !== null ? (
          <AddressText range={{ start: item.start, end: item.end }} />
        ) : (
          <Text fz="sm" c="dimmed">
            asks for {count(item.requested)}
          </Text>
        ),
    },
    { title: "Count", sort: "count", align: "right", from: "narrow", cell: (item) => count(item.count) },
    { title: "State", sort: "state", from: "narrow", cell: (item) => <AllocationState state={item.state} plain /> },
    {
      title: "Tenant",
      sort: "tenant",
      from: "medium",
      cell: (item) => <TenantLink tenant={`${item.tenantNamespace}/${item.tenant}`} />,
    },
    {
      title: "For",
      sort: "type",
      from: "medium",
      cell: (item) => `${typeInWords(item.type)}${item.role === "growth" ? ", added" : ""}${item.pinned ? ", pinned" : ""}`,
    },
    { title: "Since", from: "wide", cell: (item) => <Time at={item.allocatedAt ?? item.createdAt} /> },
    {
      title: "Actions",
      silent: true,
      align: "right",
      from: "narrow",
      cell: (item) =>
        item.phase !== "Released" && (
          <GuardedButton
            variant="subtle"
            size="compact-xs"
            reason={unless(permissions.releaseAllocations, "release allocations")}
            aria-label={`Release ${item.name}`}
            onClick={() => onRelease(item)}
          >
            Release
          </GuardedButton>
        ),
    },
  ];
}
