// What hangs on an allocation: who uses its addresses now, as the tenant says.
import { List, Text } from "@mantine/core";
import { useReleaseImpact } from "../../api/allocations";
import type { AllocationItem } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { Loaded } from "../../components/Loaded";
import { Panel } from "../../components/Panel";
import { tenantInWords } from "../../words";

export function WhoUsesIt({ item }: { item: AllocationItem }) {
  const impact = useReleaseImpact(item);
  return (
    <Panel title="Who uses it" hint="As the tenant itself says, and what a release would mean.">
      <Loaded query={impact}>
        {({ inUse, notAsked, follows, range, tenantIs }) => (
          <>
            {tenantIs !== "exists" && <Text fz="sm">{tenantInWords(tenantIs)}</Text>}
            {notAsked !== null && (
              <Text fz="sm" c="dimmed">
                The tenant could not be asked: {notAsked}
              </Text>
            )}
            {inUse.length > 0 ? (
              <List fz="sm" listStyleType="none" spacing={2}>
                {inUse.map(({ kind, name, address }) => (
                  <List.Item key={`${kind} ${name} ${address}`}>
                    <AddressText range={{ start: address, end: address }} /> {kind} {name}
                  </List.Item>
                ))}
              </List>
            ) : (
              notAsked === null &&
              range !== null &&
              tenantIs === "exists" && (
                <Text fz="sm">No machine and no Service of the tenant uses it at the moment.</Text>
              )
            )}
            {follows.length > 0 && (
              <List fz="sm" mt="xs" c="dimmed">
                {follows.map((sentence) => (
                  <List.Item key={sentence}>{sentence}</List.Item>
                ))}
              </List>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}
