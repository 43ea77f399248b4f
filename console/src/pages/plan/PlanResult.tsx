// The answer: fits or not and why, what each pool comes to, and who gets what.
import { List, Stack } from "@mantine/core";
import type { Plan } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { Panel } from "../../components/Panel";
import { BlocksTable } from "./BlocksTable";
import { PlannedPools } from "./PlannedPools";
import { TenantsTable } from "./TenantsTable";

export function PlanResult({ plan }: { plan: Plan }) {
  return (
    <Stack gap="md">
      {plan.edit && plan.edit.stranded.length > 0 && (
        <Panel title="Stranded" hint="Held now, and outside of what the pool would hand out after the edit.">
          <List fz="sm" listStyleType="none" spacing={4}>
            {plan.edit.stranded.map(({ name, tenant, range }) => (
              <List.Item key={name}>
                <AddressText range={range} /> {name}
                {tenant && `, of ${tenant}`}
              </List.Item>
            ))}
          </List>
        </Panel>
      )}
      {plan.pools.length > 0 && <PlannedPools plan={plan} />}
      {plan.waiting.length > 0 && (
        <Panel title="Served first" hint="Requests that wait now, before anything that is planned." flush>
          <BlocksTable blocks={plan.waiting} caption="Requests that wait now" />
        </Panel>
      )}
      {plan.requests.length > 0 && (
        <Panel title="Requests" flush>
          <BlocksTable blocks={plan.requests} caption="Planned requests" />
        </Panel>
      )}
      {plan.tenants.length > 0 && <TenantsTable tenants={plan.tenants} />}
    </Stack>
  );
}
