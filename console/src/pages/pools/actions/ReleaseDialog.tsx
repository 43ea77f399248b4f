// Gives addresses back, after showing what hangs on them.
import { List, Text } from "@mantine/core";
import { useRelease, useReleaseImpact } from "../../../api/allocations";
import type { ReleaseImpact } from "../../../api/types";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { Loaded } from "../../../components/Loaded";
import { plural, rangeInWords, tenantInWords, typeInWords } from "../../../words";
import { Notes } from "../Notes";
import { told } from "./told";

interface ReleaseDialogProps {
  allocation: { namespace: string; name: string };
  onClose: () => void;
}

export function ReleaseDialog({ allocation, onClose }: ReleaseDialogProps) {
  const impact = useReleaseImpact(allocation);
  const release = useRelease();
  const { namespace, name } = allocation;
  return (
    <ConfirmDialog
      opened
      title={`Release ${name}`}
      confirm="Release the addresses"
      typeName={name}
      blocked={!impact.data || impact.data.refused}
      busy={release.isPending}
      error={release.error}
      onClose={onClose}
      onConfirm={() => {
        if (!impact.data || impact.data.refused) return;
        const { resourceVersion } = impact.data;
        release.mutate(
          { namespace, name, resourceVersion },
          { onSuccess: told(`${name} goes back to its pool`, onClose) },
        );
      }}
    >
      <Loaded query={impact}>{(known) => <Impact impact={known} />}</Loaded>
    </ConfirmDialog>
  );
}

function Impact({ impact }: { impact: ReleaseImpact }) {
  const { range, tenant, tenantIs, type, pool, inUse, notAsked, follows, refused, unknown } = impact;
  return (
    <>
      <Text>
        {range ? (
          <>
            {plural(range.count, "address", "addresses")},{" "}
            <span className="mono">{rangeInWords(range.start, range.end)}</span>, go back to {pool}.
          </>
        ) : (
          "It holds no addresses."
        )}{" "}
        {tenant} has them for {typeInWords(type)}
        {tenantIs === "exists" ? "." : `. ${tenantInWords(tenantIs)}`}
      </Text>
      {unknown !== null && <Notes health="warning" title="It is unknown whether they are in use" notes={[unknown]} />}
      {refused && (
        <Notes
          health="critical"
          title="This tenant exists, so its addresses cannot be released"
          notes={["Delete the tenant to give its addresses back."]}
        />
      )}
      <Notes
        health="critical"
        title={`${plural(inUse.length, "address is", "addresses are")} in use`}
        notes={inUse.map(({ kind, name, address }) => `${address}: ${kind} ${name}`)}
      />
      {notAsked && <Notes health="warning" title="The tenant could not be asked who uses them" notes={[notAsked]} />}
      {follows.length > 0 && (
        <div>
          <Text fw={600}>What follows</Text>
          <List fz="sm" spacing={2}>
            {follows.map((sentence) => (
              <List.Item key={sentence}>{sentence}</List.Item>
            ))}
          </List>
        </div>
      )}
    </>
  );
}
