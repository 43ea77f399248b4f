// The answer: fits or not and why, what each pool comes to, and who gets what.
import { List, Stack, Text } from "@mantine/core";
import type { Plan } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { Panel } from "../../components/Panel";
import { HealthIcon } from "../../components/StatusBadge";
import { BlocksTable } from "./BlocksTable";
import classes from "./plan.module.css";
import { PlannedPools } from "./PlannedPools";
import { TenantsTable } from "./TenantsTable";
import { verdictOf } from "./verdict";

export function PlanResult({ plan }: { plan: Plan }) {
  return (
    <Stack gap="md">
      <Verdict plan={plan} />
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

function Verdict({ plan }: { plan: Plan }) {
  const { title, lines } = verdictOf(plan);
  return (
    <div className={classes.verdict} data-fits={plan.fits ? "yes" : "no"} role="status" aria-live="polite">
      <HealthIcon health={plan.fits ? "ok" : "critical"} size={22} />
      <div>
        <Text fw={600} fz="md">
          {title}
        </Text>
        {lines.map((line) => (
          <Text key={line} fz="sm">
            {line}
          </Text>
        ))}
      </div>
    </div>
  );
}
