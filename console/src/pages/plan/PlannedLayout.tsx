// Where in a pool everything would be, in true positions: as a bar, and as a map where something is planned.
import { Text } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { describeSegment } from "../../address-space/describe";
import { LayoutBar } from "../../address-space/LayoutBar";
import { AddressMap } from "../../address-space/map/AddressMap";
import { withPlanned } from "../../address-space/planned";
import { SegmentIndex, type Segment } from "../../address-space/segmentIndex";
import type { PlannedBlock, Segments } from "../../api/types";
import classes from "./plan.module.css";

export function PlannedLayout({ segments, planned }: { segments: Segments; planned: PlannedBlock[] }) {
  const index = useMemo(() => new SegmentIndex(withPlanned(segments, planned)), [segments, planned]);
  return (
    <div className={classes.layout}>
      <LayoutBar index={index} />
      {index.kinds.includes("planned") && <PlannedMap index={index} />}
    </div>
  );
}

function PlannedMap({ index }: { index: SegmentIndex }) {
  // Kept by address: another plan may put something else there.
  const [at, setAt] = useState<number | null>(null);
  const selected = useMemo(() => (at === null ? null : index.segment(index.indexAt(at))), [index, at]);
  const select = useCallback((segment: Segment | null) => setAt(segment?.first ?? null), []);
  const words = selected && describeSegment(index, selected);
  return (
    <div className={classes.map}>
      <AddressMap index={index} selected={selected} onSelect={select} />
      {words && (
        <Text fz="sm" mt="xs">
          <span className="mono">{words.title}</span>: {words.lines.join(", ")}
        </Text>
      )}
    </div>
  );
}
