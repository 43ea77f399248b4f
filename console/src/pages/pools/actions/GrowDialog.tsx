// Makes a pool larger: by a number of addresses, or into a network that holds the old one.
import { NumberInput, SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { isLarger, parseNetwork } from "../../../address-space/addresses";
import { useEditPool, usePoolEditPreview } from "../../../api/pools";
import type { PoolDetail, PoolEdit } from "../../../api/types";
import { FormDialog } from "./FormDialog";
import { PoolPreviewView } from "./PoolPreviewView";
import { PREVIEW_PAUSE_MS, told } from "./told";

export function GrowDialog({ detail, onClose }: { detail: PoolDetail; onClose: () => void }) {
  const { namespace, name, cidr: oldCidr, resourceVersion } = detail.pool;
  const [by, setBy] = useState("count");
  const [more, setMore] = useState<number | string>("");
  const [cidr, setCidr] = useState(oldCidr);
  const body = bodyOf(by, more, cidr, oldCidr);
  const [asked] = useDebouncedValue(body, PREVIEW_PAUSE_MS);
  const preview = usePoolEditPreview(namespace, name, asked);
  const edit = useEditPool(namespace, name);
  const current = JSON.stringify(asked) === JSON.stringify(body) && !preview.isPlaceholderData;
  return (
    <FormDialog
      title={`Grow ${name}`}
      confirm="Grow the pool"
      blocked={body === null || !current || preview.data?.allowed !== true}
      busy={edit.isPending}
      error={edit.error}
      onClose={onClose}
      onSubmit={() => {
        if (body) edit.mutate({ body, resourceVersion }, { onSuccess: told(`${name} has grown`, onClose) });
      }}
    >
      <SegmentedControl
        aria-label="Grow by"
        value={by}
        onChange={setBy}
        data={[
          { value: "count", label: "By a number" },
          { value: "cidr", label: "Into a network" },
        ]}
      />
      {by === "count" ? (
        <NumberInput
          label="At least so many addresses more"
          description="Windows are widened within the network first; where that is not enough, the network grows."
          min={1}
          value={more}
          onChange={setMore}
          thousandSeparator=","
          data-autofocus
        />
      ) : (
        <TextInput
          label="New network"
          description={`It has to hold ${oldCidr}`}
          value={cidr}
          onChange={(event) => setCidr(event.currentTarget.value)}
          error={errorOf(cidr.trim(), oldCidr)}
          spellCheck={false}
          data-autofocus
        />
      )}
      <PoolPreviewView query={preview} hint="Say by how much, and what it would do is shown here." />
    </FormDialog>
  );
}

function errorOf(cidr: string, oldCidr: string): string | null {
  if (!cidr || cidr === oldCidr || isLarger(cidr, oldCidr)) return null;
  return parseNetwork(cidr)
    ? `That does not hold ${oldCidr} and more: to make a pool smaller, edit the object itself`
    : "Not a network: its first address and a prefix, such as 10.40.0.0/20";
}

function bodyOf(by: string, more: number | string, cidr: string, oldCidr: string): PoolEdit | null {
  if (by === "count") return typeof more === "number" && more > 0 ? { growBy: more } : null;
  const wanted = cidr.trim();
  return isLarger(wanted, oldCidr) ? { cidr: wanted } : null;
}
