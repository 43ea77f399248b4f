// Where everything in the pool is: as bar, as map or table, and how large the holes are.
import { Button, Group, SegmentedControl, Skeleton, Text } from "@mantine/core";
import { lazy, Suspense, useCallback, useMemo, useState } from "react";
import { formatRange } from "../../../address-space/addresses";
import { KIND_WORDS } from "../../../address-space/describe";
import { FreeBlockHistogram } from "../../../address-space/FreeBlockHistogram";
import { LayoutBar } from "../../../address-space/LayoutBar";
import { AddressMap } from "../../../address-space/map/AddressMap";
import type { Segment, SegmentIndex } from "../../../address-space/segmentIndex";
import { useSegmentIndex } from "../../../address-space/useSegmentIndex";
import { SegmentTable } from "../../../address-space/SegmentTable";
import { useSignedIn } from "../../../api/session";
import type { PoolDetail } from "../../../api/types";
import { GuardedButton, unless } from "../../../components/GuardedButton";
import { Loaded } from "../../../components/Loaded";
import { ObjectLink, TenantLink } from "../../../components/ObjectLink";
import { Panel } from "../../../components/Panel";
import { plural, typeInWords } from "../../../words";
import { Notes } from "../Notes";
import classes from "../pools.module.css";
import { AdvicePanel } from "./AdvicePanel";
import { FitFinder } from "./FitFinder";
import { SharesPanel } from "./SharesPanel";

const ReleaseDialog = lazy(async () => ({ default: (await import("../actions/ReleaseDialog")).ReleaseDialog }));

export function MapTab({ detail }: { detail: PoolDetail }) {
  const { namespace, name } = detail.pool;
  const segments = useSegmentIndex(namespace, name);
  const [as, setAs] = useState("map");
  return (
    <div className={classes.stack}>
      <Panel title="Layout" hint="The whole network from its first to its last address">
        <Loaded query={segments} skeleton={<Skeleton height={30} />}>
          {(index) => <LayoutBar index={index} />}
        </Loaded>
      </Panel>
      <Panel
        title="Addresses"
        actions={
          <SegmentedControl
            aria-label="Show as"
            value={as}
            onChange={setAs}
            data={[
              { value: "map", label: "Map" },
              { value: "table", label: "Table" },
            ]}
          />
        }
      >
        {as === "table" ? (
          <SegmentTable namespace={namespace} name={name} />
        ) : (
          <Loaded query={segments} skeleton={<Skeleton height={360} />}>
            {(index) => <MapWithSelection index={index} namespace={namespace} />}
          </Loaded>
        )}
      </Panel>
      <div className={classes.columns}>
        <div className={classes.stack}>
          <Panel title="Free blocks" hint="By size: a request needs one block that is large enough">
            <FreeBlockHistogram buckets={detail.holes} />
          </Panel>
          <SharesPanel detail={detail} />
        </div>
        <div className={classes.stack}>
          <FitFinder namespace={namespace} name={name} />
          <AdvicePanel namespace={namespace} name={name} />
        </div>
      </div>
    </div>
  );
}

function MapWithSelection({ index, namespace }: { index: SegmentIndex; namespace: string }) {
  // Kept by address: what is selected may grow, shrink or change hands while it is shown.
  const [at, setAt] = useState<number | null>(null);
  const selected = useMemo(() => (at === null ? null : index.segment(index.indexAt(at))), [index, at]);
  const select = useCallback((segment: Segment | null) => setAt(segment?.first ?? null), []);
  return (
    <>
      <Notes
        health="warning"
        title="Allocations of this pool that lie outside its network"
        notes={index.segments.elsewhere.map(
          (each) => `${each.allocation} of ${each.tenant}: ${each.start}–${each.end}`,
        )}
      />
      <AddressMap index={index} selected={selected} onSelect={select} />
      {selected && (
        <Selected start={index.start} namespace={namespace} segment={selected} onClose={() => setAt(null)} />
      )}
    </>
  );
}

interface SelectedProps {
  /** The first address of the pool. */
  start: number;
  namespace: string;
  segment: Segment;
  onClose: () => void;
}

function Selected({ start, namespace, segment, onClose }: SelectedProps) {
  const { permissions } = useSignedIn();
  const [releasing, setReleasing] = useState(false);
  return (
    <div className={classes.selected}>
      <div>
        <Text fw={600} className="mono" component="span">
          {formatRange(start + segment.first, segment.size)}
        </Text>{" "}
        {plural(segment.size, "address", "addresses")}, {KIND_WORDS[segment.kind]}
        {segment.note && `: ${segment.note}`}
        {segment.tenant && (
          <>
            {" by "}
            <TenantLink tenant={segment.tenant} /> for {typeInWords(segment.type)}, allocation{" "}
            <ObjectLink link={{ kind: "allocation", namespace, name: segment.allocation }} />
          </>
        )}
      </div>
      <Group gap="xs">
        {segment.allocation && (
          <GuardedButton
            variant="default"
            reason={unless(permissions.releaseAllocations, "release allocations")}
            onClick={() => setReleasing(true)}
          >
            Release
          </GuardedButton>
        )}
        <Button variant="subtle" onClick={onClose}>
          Clear
        </Button>
      </Group>
      {releasing && (
        <Suspense>
          <ReleaseDialog allocation={{ namespace, name: segment.allocation }} onClose={() => setReleasing(false)} />
        </Suspense>
      )}
    </div>
  );
}
