// Where a block of some size would go: what a request would get, and how many other places there are.
import { Checkbox, Group, NumberInput, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useFreeBlocks } from "../../../api/pools";
import { AddressText } from "../../../components/AddressText";
import { Loaded } from "../../../components/Loaded";
import { Panel } from "../../../components/Panel";
import { StatusBadge } from "../../../components/StatusBadge";
import { count, plural } from "../../../words";

export function FitFinder({ namespace, name }: { namespace: string; name: string }) {
  const [typed, setTyped] = useState<number | string>(8);
  const [align, setAlign] = useState(false);
  const [size] = useDebouncedValue(typeof typed === "number" && typed > 0 ? typed : 1, 200);
  const free = useFreeBlocks(namespace, name, { size, align });
  return (
    <Panel title="Find room" hint="Where a block of this size would be taken from">
      <Group align="flex-end" gap="md" mb="sm">
        <NumberInput label="Addresses in one piece" min={1} value={typed} onChange={setTyped} w="11rem" />
        <Checkbox
          size="xs"
          mb={7}
          label="Aligned, as a network is"
          checked={align}
          onChange={(event) => setAlign(event.currentTarget.checked)}
        />
      </Group>
      <Loaded query={free}>
        {({ bestFit, blocks, largest }) => (
          <div aria-live="polite">
            {bestFit ? (
              <Text>
                <StatusBadge health="ok">Fits</StatusBadge> at <AddressText range={bestFit} />;{" "}
                {plural(blocks.length, "free block")} {blocks.length === 1 ? "is" : "are"} large enough.
              </Text>
            ) : (
              <Text>
                <StatusBadge health="warning">Does not fit</StatusBadge> The largest free block has {count(largest)}.
              </Text>
            )}
          </div>
        )}
      </Loaded>
    </Panel>
  );
}
