// Everything about a tenant that is not text for experts.
import { Stack, Text } from "@mantine/core";
import type { TenantDetail } from "../../../api/types";
import { Panel } from "../../../components/Panel";
import { Stat, Stats } from "../../../components/Stat";
import { HealthIcon } from "../../../components/StatusBadge";
import { count } from "../../../words";
import { BlocksPanel } from "./BlocksPanel";
import { ChangesPanel } from "./ChangesPanel";
import classes from "./detail.module.css";
import { Story } from "./Story";
import { UsePanel } from "./UsePanel";
import { WhoUsesThem } from "./WhoUsesThem";

export function TenantOverview({ detail }: { detail: TenantDetail }) {
  const { tenant, blocks, loadBalancers } = detail;
  return (
    <Stack gap="md">
      {(tenant.waitsFor || tenant.trouble.length > 0) && <Waiting detail={detail} />}
      <Panel title="In short">
        <Stats>
          <Stat label="Workers ready" value={`${count(tenant.workersReady)} of ${count(tenant.workersWanted)}`} />
          <Stat label="Node addresses" value={known(tenant.nodeAddresses)} />
          <Stat
            label="Load-balancer addresses"
            value={known(tenant.loadBalancerAddresses)}
            hint={tenant.elastic ? "grow and shrink with demand" : undefined}
          />
          <Stat label="In use by Services" value={known(tenant.loadBalancersInUse)} />
          <Stat label="Services that wait" value={known(tenant.servicesWaiting)} />
          <Stat
            label="API server"
            value={<span className={classes.endpoint}>{tenant.endpoint || "not there yet"}</span>}
          />
        </Stats>
      </Panel>
      <div className={classes.columns}>
        <Stack gap="md">
          <BlocksPanel blocks={blocks} tenant={`${tenant.namespace}/${tenant.name}`} />
          <WhoUsesThem namespace={tenant.namespace} name={tenant.name} />
        </Stack>
        <Stack gap="md">
          {loadBalancers && <UsePanel use={loadBalancers} elastic={tenant.elastic} />}
          <Panel title="How it got here" hint="Its conditions, in the order in which they came to be what they are.">
            <Story createdAt={tenant.createdAt} steps={detail.steps} />
          </Panel>
          <ChangesPanel changes={detail.changes} />
        </Stack>
      </div>
    </Stack>
  );
}

function Waiting({ detail: { tenant } }: { detail: TenantDetail }) {
  const failed = tenant.phase === "Failed";
  const health = failed ? "critical" : tenant.trouble.length > 0 ? "warning" : "working";
  return (
    <div className={classes.waiting} data-health={health}>
      <HealthIcon health={health} size={18} />
      <div>
        {tenant.waitsFor && (
          <Text fz="sm">
            <strong>
              {tenant.deleting ? "It is being deleted: " : failed ? "An administrator has to act: " : "It waits: "}
            </strong>
            {tenant.waitsFor.replace(/^waits for /, "for ")}
          </Text>
        )}
        {tenant.trouble
          .filter((sentence) => sentence !== tenant.waitsFor)
          .map((sentence) => (
            <Text key={sentence} fz="sm">
              {sentence}
            </Text>
          ))}
      </div>
    </div>
  );
}

function known(value: number | null): string {
  return value === null ? "not known" : count(value);
}
