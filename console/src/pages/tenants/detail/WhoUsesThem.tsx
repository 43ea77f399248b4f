// Every address of a tenant and who has it, as the tenant itself says, and whether its MetalLB knows them.
import { Group, List, Text } from "@mantine/core";
import { useSignedIn } from "../../../api/session";
import { useTenantAddresses } from "../../../api/tenants";
import type { Span, TenantAddresses } from "../../../api/types";
import { AddressText } from "../../../components/AddressText";
import { EmptyState } from "../../../components/EmptyState";
import { Loaded } from "../../../components/Loaded";
import { ObjectLink } from "../../../components/ObjectLink";
import { Panel } from "../../../components/Panel";
import { StatusBadge, type Health } from "../../../components/StatusBadge";
import { SmallTable } from "../../../components/table/SmallTable";
import { plural } from "../../../words";

export function WhoUsesThem({ namespace, name }: { namespace: string; name: string }) {
  const addresses = useTenantAddresses(namespace, name);
  return (
    <>
      <Panel title="Services and their addresses" hint="As the tenant itself says, asked just now." flush>
        <Loaded query={addresses}>{(data) => <Services addresses={data} />}</Loaded>
      </Panel>
      <Panel title="Nodes and their addresses" flush>
        <Loaded query={addresses}>
          {(data) => <Spans spans={data.nodes} caption="Node addresses" empty="No node addresses" />}
        </Loaded>
      </Panel>
      <Panel title="MetalLB" hint="What the tenant's MetalLB may announce, beside what the tenant holds.">
        <Loaded query={addresses}>{(data) => <InStep metallb={data.metallb} />}</Loaded>
      </Panel>
    </>
  );
}

function Services({ addresses: { loadBalancers, waiting, unseen } }: { addresses: TenantAddresses }) {
  return (
    <>
      <Spans spans={loadBalancers} caption="Load-balancer addresses" empty="No load-balancer addresses" />
      {waiting !== null && waiting.length > 0 && (
        <Group px="sm" pb="sm" gap="xs" role="status">
          <StatusBadge health="warning">{plural(waiting.length, "Service waits", "Services wait")}</StatusBadge>
          <Text fz="sm">{waiting.join(", ")}</Text>
        </Group>
      )}
      {unseen.length > 0 && (
        <List px="sm" pb="sm" fz="xs" c="dimmed" listStyleType="none">
          {unseen.map((sentence) => (
            <List.Item key={sentence}>{sentence}</List.Item>
          ))}
        </List>
      )}
    </>
  );
}

const STATES: Record<string, Health> = { "in use": "ok", idle: "info", "not known": "unknown", "not held": "warning" };

function Spans({ spans, caption, empty }: { spans: Span[]; caption: string; empty: string }) {
  const { home } = useSignedIn();
  if (spans.length === 0) return <EmptyState title={empty} />;
  return (
    <SmallTable
      caption={caption}
      columns={["Address", "State", "Used by", "Allocation"]}
      rows={spans.map((span) => ({
        key: `${span.start} ${span.state} ${span.users.join()}`,
        cells: cellsOf(span, home),
      }))}
    />
  );
}

function cellsOf(span: Span, home: string) {
  return [
    <>
      <AddressText range={span} />
      {span.count > 1 && (
        <Text fz="xs" c="dimmed">
          {plural(span.count, "address", "addresses")}
        </Text>
      )}
    </>,
    <StatusBadge key="state" health={STATES[span.state] ?? "unknown"} plain>
      {span.state}
    </StatusBadge>,
    <>
      {span.users.length > 0 ? span.users.join(", ") : "–"}
      {span.platform && (
        <Text fz="xs" c="dimmed">
          the platform's own
        </Text>
      )}
    </>,
    span.allocation ? <ObjectLink link={{ kind: "allocation", namespace: home, name: span.allocation }} /> : "–",
  ];
}

function InStep({ metallb: { inStep, missing, strange, says } }: { metallb: TenantAddresses["metallb"] }) {
  return (
    <>
      <Group gap="xs" align="flex-start">
        {inStep === null ? (
          <StatusBadge health="unknown">not known</StatusBadge>
        ) : inStep ? (
          <StatusBadge health="ok">in step</StatusBadge>
        ) : (
          <StatusBadge health="critical">out of step</StatusBadge>
        )}
        <Text fz="sm">{says}</Text>
      </Group>
      {missing.length > 0 && (
        <Text fz="sm" mt="xs">
          <strong>Missing,</strong> held but not announced: <span className="mono">{missing.join(", ")}</span>
        </Text>
      )}
      {strange.length > 0 && (
        <Text fz="sm" mt="xs">
          <strong>Strange,</strong> announced but not held: <span className="mono">{strange.join(", ")}</span>
        </Text>
      )}
    </>
  );
}
