// One allocation: what it holds and for whom, where that is, how it came about, and what hangs on it.
import { Stack, Text } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { useState, type ReactNode } from "react";
import { useParams } from "react-router";
import { useAllocation } from "../../api/allocations";
import { useActivity } from "../../api/estate";
import { useSignedIn } from "../../api/session";
import type { AllocationItem } from "../../api/types";
import { ActivityFeed } from "../../components/ActivityFeed";
import { AddressText } from "../../components/AddressText";
import { AllocationState } from "../../components/AllocationState";
import { GuardedButton, unless } from "../../components/GuardedButton";
import { Loaded } from "../../components/Loaded";
import { ObjectLink, TenantLink } from "../../components/ObjectLink";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { PositionStrip } from "../../components/PositionStrip";
import { Stat, Stats } from "../../components/Stat";
import { Time } from "../../components/Time";
import { paths } from "../../paths";
import { count, typeInWords } from "../../words";
import { ReleaseDialog } from "../pools/actions/ReleaseDialog";
import { WhoUsesIt } from "./WhoUsesIt";

export function AllocationPage() {
  const { namespace = "", name = "" } = useParams();
  const { permissions } = useSignedIn();
  const allocation = useAllocation(namespace, name);
  const [releasing, setReleasing] = useState(false);
  const { data } = allocation;
  return (
    <Page
      title={name}
      trail={[{ title: "Allocations", to: paths.allocations }]}
      badge={data && <AllocationState state={data.state} />}
      subtitle={data?.message}
      actions={
        data && (
          <GuardedButton
            variant="default"
            leftSection={<IconTrash size={15} />}
            reason={
              data.state === "released"
                ? `${name} was released already.`
                : unless(permissions.releaseAllocations, "release allocations")
            }
            onClick={() => setReleasing(true)}
          >
            Release
          </GuardedButton>
        )
      }
    >
      <Loaded query={allocation}>{(item) => <Parts item={item} />}</Loaded>
      {releasing && data && <ReleaseDialog allocation={data} onClose={() => setReleasing(false)} />}
    </Page>
  );
}

/** Longer than a figure, and so smaller. */
function Name({ children }: { children: ReactNode }) {
  return (
    <Text span fz="md">
      {children}
    </Text>
  );
}

function Parts({ item }: { item: AllocationItem }) {
  const range =
    item.start !== null && item.end !== null ? { start: item.start, end: item.end, count: item.count } : null;
  return (
    <Stack gap="md">
      <Panel title="In short">
        <Stats>
          <Stat
            label="Addresses"
            value={
              <Name>
                <AddressText range={range} />
              </Name>
            }
            hint={range ? `${count(item.count)} in all` : undefined}
          />
          <Stat
            label="Asked for"
            value={item.requested === null ? "the usual number" : count(item.requested)}
            hint={item.pinned ? "exactly these: hand-picked" : undefined}
          />
          <Stat
            label="Tenant"
            value={
              <Name>
                <TenantLink tenant={`${item.tenantNamespace}/${item.tenant}`} />
              </Name>
            }
          />
          <Stat label="For" value={typeInWords(item.type)} hint={item.role || undefined} />
          <Stat
            label="Pool"
            value={
              <Name>
                <ObjectLink link={{ kind: "pool", namespace: item.namespace, name: item.pool }} />
              </Name>
            }
          />
        </Stats>
      </Panel>
      {range && item.state !== "released" && (
        <Panel title="Where it is">
          <PositionStrip
            pool={item.pool}
            blocks={[{ allocation: item.name, range, leaving: item.state === "going back" }]}
          />
        </Panel>
      )}
      {range && item.state !== "released" && <WhoUsesIt item={item} />}
      <Panel title="How it came about">
        <Moments item={item} />
      </Panel>
      <WhatHappened namespace={item.namespace} name={item.name} />
    </Stack>
  );
}

function Moments({ item }: { item: AllocationItem }) {
  const moments = [
    ["Asked for", item.createdAt],
    ["Granted", item.allocatedAt],
    ["Idle since", item.idleSince],
    ["Going back since", item.drainingSince],
    ["Released", item.releasedAt],
  ] as const;
  return (
    <Stats>{moments.map(([label, at]) => at && <Stat key={label} label={label} value={<Time at={at} />} />)}</Stats>
  );
}

function WhatHappened({ namespace, name }: { namespace: string; name: string }) {
  const activity = useActivity({ kind: "allocation", namespace, name, limit: 50 });
  return (
    <Panel title="What happened" hint="Kubernetes forgets events after an hour or so.">
      <Loaded query={activity}>
        {({ items }) =>
          items.length === 0 ? (
            <Text fz="sm" c="dimmed">
              Nothing on record.
            </Text>
          ) : (
            <ActivityFeed items={items} ofOneObject />
          )
        }
      </Loaded>
    </Panel>
  );
}
