// Single requests to one pool.
import { SegmentedControl, TagsInput } from "@mantine/core";
import { AskPanel } from "./AskPanel";
import { PoolSelect } from "./PoolSelect";
import { MOST_ADDRESSES, type RequestsQuestion } from "./question";

interface RequestsFormProps {
  asked: RequestsQuestion | null;
  onChange: (asked: RequestsQuestion | null) => void;
}

export function RequestsForm({ asked, onChange }: RequestsFormProps) {
  return (
    <AskPanel
      title="Single requests"
      hint="Blocks of so many contiguous addresses from one pool."
      on={asked !== null}
      onTurn={(on) => onChange(on ? { pool: "", type: "loadbalancer", counts: [16] } : null)}
    >
      {asked && (
        <>
          <PoolSelect value={asked.pool} onChange={(pool) => onChange({ ...asked, pool })} />
          <TagsInput
            size="xs"
            label="Sizes"
            description="One for each request; Enter adds another."
            value={asked.counts.map(String)}
            onChange={(sizes) => onChange({ ...asked, counts: sizes.flatMap(sizeOf) })}
            allowDuplicates
            splitChars={[",", " "]}
            inputMode="numeric"
            clearable
            clearButtonProps={{ "aria-label": "Clear the sizes" }}
          />
          <SegmentedControl
            aria-label="What the addresses are for"
            data={[
              { value: "loadbalancer", label: "Load balancers" },
              { value: "nodes", label: "Nodes" },
            ]}
            value={asked.type}
            onChange={(type) => onChange({ ...asked, type })}
          />
        </>
      )}
    </AskPanel>
  );
}

function sizeOf(text: string): number[] {
  const size = Number(text);
  return Number.isInteger(size) && size >= 1 && size <= MOST_ADDRESSES ? [size] : [];
}
