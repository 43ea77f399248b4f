// One tenant: where it stands and why, which addresses it has and who uses them, and what can be done to it.
import { Group, Stack, Tabs, Text } from "@mantine/core";
import { useParams, useSearchParams } from "react-router";
import { useActivity } from "../../api/estate";
import { useTenant } from "../../api/tenants";
import type { TenantDetail } from "../../api/types";
import { ActivityFeed } from "../../components/ActivityFeed";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { PhaseBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { paths } from "../../paths";
import { TenantActions } from "./actions/TenantActions";
import { ProviderName } from "./ProviderName";
import { TenantOverview } from "./detail/TenantOverview";
import { YamlTab } from "./detail/YamlTab";

export function TenantPage() {
  const { namespace = "", name = "" } = useParams();
  const tenant = useTenant(namespace, name);
  const { data } = tenant;
  return (
    <Page
      title={name}
      trail={[
        { title: "Tenants", to: paths.tenants },
        { title: namespace, to: `${paths.tenants}?namespace=${encodeURIComponent(namespace)}` },
      ]}
      badge={data && <PhaseBadge phase={data.tenant.phase} />}
      subtitle={data && <Facts detail={data} />}
      actions={data && <TenantActions detail={data} />}
    >
      <Loaded query={tenant}>{(detail) => <Parts detail={detail} />}</Loaded>
    </Page>
  );
}

function Facts({ detail: { tenant } }: { detail: TenantDetail }) {
  return (
    <Group gap={4} component="span">
      <span>
        Kubernetes {tenant.version || "not there yet"}
        {tenant.goesTo && ` on its way to ${tenant.goesTo}`} ·
      </span>
      {tenant.provider && (
        <span>
          on <ProviderName provider={tenant.provider} /> ·
        </span>
      )}
      {tenant.team && <span>team {tenant.team} ·</span>}
      <span>
        {tenant.phase} since <Time at={tenant.since} /> ·
      </span>
      <span>
        created <Time at={tenant.createdAt} />
      </span>
    </Group>
  );
}

function Parts({ detail }: { detail: TenantDetail }) {
  const [params, setParams] = useSearchParams();
  const show = (tab: string | null) =>
    setParams(tab === null || tab === "overview" ? {} : { tab }, { replace: true, preventScrollReset: true });
  return (
    <Tabs value={params.get("tab") ?? "overview"} onChange={show} keepMounted={false}>
      <Tabs.List mb="md">
        <Tabs.Tab value="overview">Overview</Tabs.Tab>
        <Tabs.Tab value="activity">Activity</Tabs.Tab>
        <Tabs.Tab value="yaml">YAML</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="overview">
        <TenantOverview detail={detail} />
      </Tabs.Panel>
      <Tabs.Panel value="activity">
        <Stack gap="md">
          <TenantActivity namespace={detail.tenant.namespace} name={detail.tenant.name} />
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="yaml">
        <YamlTab detail={detail} />
      </Tabs.Panel>
    </Tabs>
  );
}

const LIMIT = 100;

function TenantActivity({ namespace, name }: { namespace: string; name: string }) {
  const activity = useActivity({ kind: "tenant", namespace, name, limit: LIMIT });
  return (
    <Panel
      title="What happened"
      hint="Events, and what people did, newest first. Kubernetes forgets events after an hour or so."
    >
      <Loaded query={activity}>
        {({ items, total }) => (
          <>
            <ActivityFeed items={items} ofOneObject />
            {total > items.length && (
              <Text fz="xs" c="dimmed">
                The newest {items.length} of {total}.
              </Text>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}
