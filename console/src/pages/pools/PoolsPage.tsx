// Every pool: how full, how scattered, where there is room.
import { Anchor, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link, useSearchParams } from "react-router";
import { PoolStrip } from "../../address-space/PoolStrip";
import { UsageMeter } from "../../address-space/UsageMeter";
import { useOverlaps, usePools } from "../../api/pools";
import { useSignedIn } from "../../api/session";
import type { PoolItem } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { GuardedButton, unless } from "../../components/GuardedButton";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { DataTable, type Column } from "../../components/table/DataTable";
import { FilterBox } from "../../components/table/FilterBox";
import { NothingFits } from "../../components/table/NothingFits";
import { useListState } from "../../components/table/useListState";
import { paths } from "../../paths";
import { count } from "../../words";
import { CreatePoolDialog } from "./actions/CreatePoolDialog";
import { Notes } from "./Notes";
import { PoolState } from "./PoolState";

const LIMIT = 50;
const FILTERS = ["q"];

const COLUMNS: Column<PoolItem>[] = [
  {
    title: "Pool",
    sort: "name",
    cell: (pool) => (
      <>
        <Anchor component={Link} to={paths.pool(pool.namespace, pool.name)} fw={600} fz="sm">
          {pool.name}
        </Anchor>
        <Text fz="xs" c="dimmed" className="mono">
          {pool.cidr}
        </Text>
      </>
    ),
  },
  { title: "State", from: "medium", cell: (pool) => <PoolState pool={pool} plain /> },
  {
    title: "Held",
    sort: "percent",
    cell: (pool) =>
      pool.total === null || pool.allocated === null ? (
        "not known"
      ) : (
        <UsageMeter allocated={pool.allocated} total={pool.total} tier={pool.tier} />
      ),
  },
  { title: "Layout", from: "narrow", cell: (pool) => <PoolStrip strip={pool.strip} /> },
  { title: "Free", sort: "available", align: "right", from: "medium", cell: (pool) => count(pool.available) },
  {
    title: "Largest free block",
    sort: "largestFreeBlock",
    align: "right",
    from: "wide",
    cell: (pool) => count(pool.largestFreeBlock),
  },
  {
    title: "Scattered",
    sort: "fragmentationPercent",
    align: "right",
    from: "wide",
    cell: (pool) => (pool.fragmentationPercent === null ? "not known" : `${pool.fragmentationPercent}%`),
  },
  {
    title: "Allocations",
    align: "right",
    from: "medium",
    cell: (pool) => (
      <>
        {count(pool.allocationCount)}
        {pool.waiting > 0 && (
          <div>
            <StatusBadge health="warning" plain>{`${count(pool.waiting)} waiting`}</StatusBadge>
          </div>
        )}
      </>
    ),
  },
];

export function PoolsPage() {
  const list = useListState("name");
  const pools = usePools({ q: list.get("q"), sort: list.sort, limit: LIMIT, cursor: list.cursor });
  const { permissions } = useSignedIn();
  const [params, setParams] = useSearchParams();
  const setCreating = (creating: boolean) =>
    setParams((old) => {
      const next = new URLSearchParams(old);
      if (creating) next.set("new", "");
      else next.delete("new");
      return next;
    });
  const create = (
    <GuardedButton
      leftSection={<IconPlus size={14} />}
      reason={unless(permissions.createPools, "create pools")}
      onClick={() => setCreating(true)}
    >
      Create pool
    </GuardedButton>
  );
  return (
    <Page title="Pools" subtitle="Networks from which tenants get their addresses" actions={create}>
      <OverlapNotes />
      <Panel title="All pools" flush actions={<FilterBox list={list} label="Filter by name or network" />}>
        <DataTable
          caption="Pools"
          columns={COLUMNS}
          query={pools}
          list={list}
          limit={LIMIT}
          keyOf={(pool) => `${pool.namespace}/${pool.name}`}
          empty={
            list.has(FILTERS) ? (
              <NothingFits list={list} filters={FILTERS} title="No pool has this in its name or network" />
            ) : (
              <EmptyState title="No pools yet" action={create}>
                A pool is a network from which tenants get their addresses.
              </EmptyState>
            )
          }
        />
      </Panel>
      <CreatePoolDialog opened={params.has("new")} onClose={() => setCreating(false)} />
    </Page>
  );
}

/** Pools that share addresses; nothing where there are none, or where they are not known. */
function OverlapNotes() {
  const overlaps = useOverlaps();
  return (
    <Notes
      health="warning"
      title="Pools share addresses"
      notes={overlaps.data?.items.map(({ message }) => message) ?? []}
    />
  );
}
