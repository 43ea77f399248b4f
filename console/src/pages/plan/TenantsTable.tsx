// Who gets what, tenant by tenant.
import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import type { Plan } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { SmallTable } from "../../components/table/SmallTable";
import { typeInWords } from "../../words";

const FIRST = 8;
const MOST = 200;

export function TenantsTable({ tenants }: { tenants: Plan["tenants"] }) {
  const [all, setAll] = useState(false);
  const shown = tenants.slice(0, all ? MOST : FIRST);
  return (
    <Panel title="Who gets what" flush>
      <SmallTable
        caption="Planned tenants"
        columns={["Tenant", "Outcome", "Gets"]}
        rows={shown.map((tenant) => ({ key: tenant.name, cells: cellsOf(tenant) }))}
      />
      {tenants.length > FIRST && (
        <Group px="sm" py={6}>
          <Button variant="subtle" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Show fewer" : `Show ${tenants.length > MOST ? `the first ${MOST}` : "all"} of ${tenants.length}`}
          </Button>
        </Group>
      )}
    </Panel>
  );
}

function cellsOf({ name, fits, blocks, message }: Plan["tenants"][number]) {
  return [
    name,
    <StatusBadge key="fits" health={fits ? "ok" : "critical"} plain>
      {fits ? "fits" : "does not fit"}
    </StatusBadge>,
    <>
      {blocks.map(
        ({ name: block, type, range, pool }) =>
          range && (
            <div key={block}>
              <AddressText range={range} />{" "}
              <Text span fz="xs" c="dimmed">
                for {typeInWords(type)}, from {pool}
              </Text>
            </div>
          ),
      )}
      {message && <Text fz="xs">{message}</Text>}
    </>,
  ];
}
