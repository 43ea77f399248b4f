// What the list of tenants tells of each.
import { Text } from "@mantine/core";
import type { TenantItem } from "../../api/types";
import { ObjectLink } from "../../components/ObjectLink";
import { HealthIcon, PhaseBadge, StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { OnlyNarrow } from "../../components/table/OnlyNarrow";
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
    cell: ({ phase, waitsFor, trouble, workersReady, workersWanted, nodeAddresses, loadBalancerAddresses }) => (
      <div className={classes.phase}>
        <PhaseBadge phase={phase} plain />
        <OnlyNarrow>
          <Text fz="xs" c="dimmed">
            {workersReady}/{workersWanted} workers
            {nodeAddresses !== null &&
              loadBalancerAddresses !== null &&
              `, ${count(nodeAddresses + loadBalancerAddresses)} addresses`}
          </Text>
        </OnlyNarrow>
        <Trouble
          sentences={[...new Set([...trouble, waitsFor])].filter((sentence) => sentence !== "")}
          severe={trouble.length > 0}
        />
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
  {
    title: "Provider",
    sort: "provider",
    from: "wide",
    cell: ({ provider }) => (
      <span className={classes.provider}>
        <ProviderName provider={provider} />
      </span>
    ),
  },
  { title: "Team", sort: "team", from: "wide", cell: ({ team }) => team || "–" },
  {
    title: "Node addresses",
    sort: "nodeAddresses",
    from: "medium",
    align: "right",
    cell: ({ nodeAddresses }) => (nodeAddresses === null ? "–" : count(nodeAddresses)),
  },
  {
    title: "Load-balancer addresses",
    sort: "loadBalancerAddresses",
    from: "narrow",
    cell: (tenant) => <LoadBalancers tenant={tenant} />,
  },
  { title: "Created", sort: "createdAt", from: "medium", cell: ({ createdAt }) => <Time at={createdAt} /> },
];

/** What it waits for, and what an administrator should look at; the whole of it stands on the tenant's own page. */
function Trouble({ sentences, severe }: { sentences: string[]; severe: boolean }) {
  const [first, ...more] = sentences;
  if (first === undefined) return null;
  return (
    <div className={classes.trouble} title={sentences.join("\n")}>
      {severe && <HealthIcon health="warning" size={14} />}
      <Text fz="xs" c="dimmed" lineClamp={2}>
        {more.length > 0 && `${plural(sentences.length, "thing")} to look at: `}
        {first}
      </Text>
    </div>
  );
}

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
