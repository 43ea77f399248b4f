// One provider: its pools in the order in which they are tried, how many more tenants fit, and who is on it.
import { Button, List, Stack, Text } from "@mantine/core";
import { IconCalculator } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import { useProvider } from "../../api/providers";
import type { ProviderDetail } from "../../api/types";
import { ConditionsTable } from "../../components/ConditionsTable";
import { CopyBlock } from "../../components/CopyText";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Stat, Stats } from "../../components/Stat";
import { HealthIcon, StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { paths } from "../../paths";
import { count } from "../../words";
import classes from "./providers.module.css";
import { ProviderPools } from "./ProviderPools";
import { ProviderTenants } from "./ProviderTenants";
import { modeInWords } from "./words";

export function ProviderPage() {
  const { namespace = "", name = "" } = useParams();
  const provider = useProvider(namespace, name);
  const { data } = provider;
  return (
    <Page
      title={name}
      trail={[{ title: "Providers", to: paths.providers }]}
      badge={
        data && (
          <StatusBadge health={data.provider.ready ? "ok" : "warning"}>
            {data.provider.ready ? "ready" : "not ready"}
          </StatusBadge>
        )
      }
      subtitle={
        data && (
          <>
            {data.provider.provider}, addresses {modeInWords(data.provider)} · for {data.scope} · created{" "}
            <Time at={data.provider.createdAt} />
          </>
        )
      }
      actions={
        <Button
          component={Link}
          to={`${paths.plan}?tenants=4&provider=${encodeURIComponent(name)}`}
          variant="default"
          leftSection={<IconCalculator size={15} />}
        >
          Plan tenants here
        </Button>
      }
    >
      <Loaded query={provider}>{(detail) => <Parts detail={detail} />}</Loaded>
    </Page>
  );
}

function Parts({ detail }: { detail: ProviderDetail }) {
  const { provider, quotas, conditions, yaml } = detail;
  return (
    <Stack gap="md">
      {provider.problem && (
        <div className={classes.problem} role="status">
          <HealthIcon health="warning" size={18} />
          <Text fz="sm">{provider.problem}</Text>
        </div>
      )}
      <Panel title="In short">
        <Stats>
          <Stat
            label="Room for"
            value={
              provider.estimatedTenants === null ? "not known" : `${count(provider.estimatedTenants)} more tenants`
            }
            hint="of the usual size, estimated"
          />
          <Stat label="Tenants on it" value={count(provider.tenants)} />
          <Stat
            label="Free addresses"
            value={provider.available === null ? "not known" : count(provider.available)}
            hint="in all of its pools"
          />
          <Stat label="Load-balancer addresses" value={allocationInWords(provider.allocationMode)} />
        </Stats>
      </Panel>
      <div className={classes.columns}>
        <Stack gap="md">
          <ProviderPools detail={detail} />
          <ProviderTenants provider={provider} />
        </Stack>
        <Stack gap="md">
          <Panel title="Quotas">
            {quotas.length === 0 ? (
              <Text fz="sm">None: tenants may have as much as the pools hold.</Text>
            ) : (
              <List fz="sm">
                {quotas.map((quota) => (
                  <List.Item key={quota}>{quota}</List.Item>
                ))}
              </List>
            )}
          </Panel>
          <Panel title="Conditions" flush>
            <ConditionsTable conditions={conditions} />
          </Panel>
          <Panel title="Manifest" hint="Its credentials are in a Secret, and not shown here.">
            <CopyBlock text={yaml} what="manifest" />
          </Panel>
        </Stack>
      </div>
    </Stack>
  );
}

function allocationInWords(mode: string): string {
  if (mode === "elastic") return "follow demand";
  return mode === "static" ? "a fixed number" : "by the cloud";
}
