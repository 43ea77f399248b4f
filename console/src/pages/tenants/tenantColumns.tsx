// What the list of tenants tells of each.
import { Text, Tooltip } from "@mantine/core";
import type { TenantItem } from "../../api/types";
import { ObjectLink } from "../../components/ObjectLink";
import { PhaseBadge, StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import type { Column } from "../../components/table/DataTable";
import { count, plural } from "../../words";
import { ProviderName } from "./ProviderName";
import classes from "./tenants.module.css";

export const tenantColumns: Column<TenantItem>[] = [
  {
    title: "Tenant",
    sort: "name",
    cell: ({ namespace, name }) => (
      <div className={classes.name}>
        <ObjectLink link={{ kind: "tenant", namespace, name }} />
        <Text fz="xs" c="dimmed">
          {namespace}
        </Text>
      </div>
    ),
  },
  {
    title: "Phase",
    sort: "phase",
    cell: ({ phase, waitsFor, trouble }) => (
      <div className={classes.phase}>
        <PhaseBadge phase={phase} plain />
        {waitsFor && (
          <Text fz="xs" c="dimmed" lineClamp={2} title={waitsFor}>
            {waitsFor}
          </Text>
        )}
        {trouble.length > 0 && (
          <Tooltip label={trouble.join("\n")} multiline maw={360}>
            {/* The whole of it stands on the tenant's own page. */}
            <span>
              <StatusBadge health="warning" plain>
                {trouble.length === 1 ? "Look at this" : `${plural(trouble.length, "thing")} to look at`}
              </StatusBadge>
              <span className="visually-hidden">: {trouble.join(" ")}</span>
            </span>
          </Tooltip>
        )}
      </div>
    ),
  },
  {
    title: "Version",
    sort: "version",
    from: "medium",
    cell: ({ version, goesTo }) => (
      <>
        {version || "–"}
        {goesTo && (
          <Text fz="xs" c="dimmed">
            goes to {goesTo}
          </Text>
        )}
      </>
    ),
  },
  {
    title: "Workers",
    sort: "workers",
    from: "narrow",
    align: "right",
    cell: ({ workersReady, workersWanted }) => (
      <span title={`${workersReady} of ${workersWanted} are ready`}>
        {workersReady}/{workersWanted}
      </span>
    ),
  },
  { title: "Provider", sort: "provider", from: "wide", cell: ({ provider }) => <ProviderName provider={provider} /> },
  { title: "Team", sort: "team", from: "wide", cell: ({ team }) => team || "–" },
  {
    title: "Node addresses",
    sort: "nodeAddresses",
    from: "medium",
    align: "right",
    cell: ({ nodeAddresses }) => (nodeAddresses === null ? "–" : count(nodeAddresses)),
  },
  { title: "Load-balancer addresses", sort: "loadBalancerAddresses", from: "narrow", cell: (tenant) => <LoadBalancers tenant={tenant} /> },
  { title: "Created", sort: "createdAt", from: "medium", cell: ({ createdAt }) => <Time at={createdAt} /> },
];

function LoadBalancers({ tenant }: { tenant: TenantItem }) {
  const { loadBalancerAddresses: held, loadBalancersInUse: used, servicesWaiting: waiting } = tenant;
  if (held === null) return "–";
  return (
    <>
      {count(held)} held
      {used !== null && <Text span fz="xs" c="dimmed">{`, ${count(used)} in use`}</Text>}
      {waiting !== null && waiting > 0 && (
        <div>
          <StatusBadge health="warning" plain>
            {waiting === 1 ? "1 Service waits" : `${count(waiting)} Services wait`}
          </StatusBadge>
        </div>
      )}
    </>
  );
}
