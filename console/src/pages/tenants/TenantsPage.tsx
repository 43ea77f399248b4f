// All tenants: where each stands, and which addresses it has.
import { Group } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useNavigate } from "react-router";
import { useProviders } from "../../api/providers";
import { useSignedIn } from "../../api/session";
import { useTenants } from "../../api/tenants";
import { EmptyState } from "../../components/EmptyState";
import { GuardedButton, unless } from "../../components/GuardedButton";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { DataTable } from "../../components/table/DataTable";
import { FilterBox } from "../../components/table/FilterBox";
import { FilterSelect } from "../../components/table/FilterSelect";
import { NothingFits } from "../../components/table/NothingFits";
import { useListState } from "../../components/table/useListState";
import { paths } from "../../paths";
import { tenantColumns } from "./tenantColumns";

const LIMIT = 50;
const FILTERS = ["q", "phase", "namespace", "provider"] as const;
const PHASES = ["Pending", "Provisioning", "Installing", "Ready", "Updating", "Failed", "Deleting"];

export function TenantsPage() {
  const { permissions } = useSignedIn();
  const navigate = useNavigate();
  const list = useListState("name");
  const tenants = useTenants({ ...list.filters(FILTERS), sort: list.sort, limit: LIMIT, cursor: list.cursor });
  const providers = useProviders({ limit: 200 });
  const create = (
    <GuardedButton
      leftSection={<IconPlus size={15} />}
      reason={unless(permissions.createTenants, "create tenants")}
      onClick={() => void navigate(paths.newTenant)}
    >
      New tenant
    </GuardedButton>
  );
  return (
    <Page title="Tenants" subtitle="Kubernetes clusters of teams, and the addresses that they hold." actions={create}>
      <Panel
        title="Tenant clusters"
        flush
        actions={
          <Group gap="xs">
            <FilterBox list={list} label="Filter by name" />
            <FilterSelect list={list} name="phase" label="Any phase" options={PHASES} />
            <FilterSelect list={list} name="namespace" label="Any namespace" options={tenants.data?.namespaces ?? []} />
            <FilterSelect
              list={list}
              name="provider"
              label="Any provider"
              options={providers.data?.items.map(({ name }) => name) ?? []}
            />
          </Group>
        }
      >
        <DataTable
          caption="Tenant clusters"
          columns={tenantColumns}
          query={tenants}
          list={list}
          limit={LIMIT}
          keyOf={({ namespace, name }) => `${namespace}/${name}`}
          empty={
            list.has(FILTERS) ? (
              <NothingFits list={list} filters={FILTERS} title="No tenant is like that" />
            ) : (
              <EmptyState title="No tenants yet" action={create}>
                A tenant is a cluster for a team. It gets its addresses from pools as soon as it is created.
              </EmptyState>
            )
          }
        />
      </Panel>
    </Page>
  );
}
