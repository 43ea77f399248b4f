// What each pool comes to: how full before and after, and where the planned ranges would be.
import { Group, Text } from "@mantine/core";
import { useSegments } from "../../api/pools";
import { useSignedIn } from "../../api/session";
import type { Plan, PlannedBlock, PlannedPool, Segments, Tier } from "../../api/types";
import { ObjectLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { count, percent, tierInWords } from "../../words";
import classes from "./plan.module.css";
import { PlannedLayout } from "./PlannedLayout";

/** From which percent on each tier holds, lowest first. */
const TIERS: { tier: Tier; percent: number }[] = [
  { tier: "CapacityWarning", percent: 70 },
  { tier: "CapacityCritical", percent: 85 },
  { tier: "CapacityExhausted", percent: 95 },
];

export function PlannedPools({ plan }: { plan: Plan }) {
  const blocks = [...plan.waiting, ...plan.requests, ...plan.tenants.flatMap((tenant) => tenant.blocks)];
  return (
    <Panel title="Pools, before and after" hint="Marks are at 70, 85 and 95 %: filling up, nearly full, full.">
      {plan.pools.map((pool) => (
        <PoolOutcome
          key={pool.name}
          pool={pool}
          planned={blocks.filter((block) => block.pool === pool.name)}
          edited={plan.edited?.pool === pool.name ? plan.edited : null}
        />
      ))}
    </Panel>
  );
}

interface PoolOutcomeProps {
  pool: PlannedPool;
  planned: PlannedBlock[];
  /** The pool after its edit, before anything planned. */
  edited: Segments | null;
}

function PoolOutcome({ pool: { name, cidr, before, after }, planned, edited }: PoolOutcomeProps) {
  const { home } = useSignedIn();
  const today = useSegments(home, name).data;
  const segments = edited ?? today;
  const tierNow = highest(before?.tiers);
  const tierThen = highest(after?.tiers);
  return (
    <div className={classes.pool}>
      <div className={classes.poolHead}>
        <Text fz="sm" fw={600}>
          <ObjectLink link={{ kind: "pool", namespace: home, name }} />{" "}
          <Text span fz="xs" c="dimmed" className="mono">
            {cidr}
          </Text>
        </Text>
        <Group gap="xs">
          {tierThen ? (
            <StatusBadge health={tierThen === "CapacityWarning" ? "warning" : "critical"}>
              {tierThen === tierNow
                ? `stays ${tierInWords(tierThen)}`
                : tierNow
                  ? `${tierInWords(tierNow)} now, then ${tierInWords(tierThen)}`
                  : `becomes ${tierInWords(tierThen)}`}
            </StatusBadge>
          ) : (
            <StatusBadge health="ok">{tierNow ? `no longer ${tierInWords(tierNow)}` : "room to spare"}</StatusBadge>
          )}
        </Group>
      </div>
      {before && after ? (
        <>
          <BeforeAfter before={before} after={after} tier={tierThen} />
          <div className={classes.figures}>
            <span>
              <Move from={heldOf(before)} to={heldOf(after)} /> held
            </span>
            <span>
              largest free block <Move from={count(before.largestFreeBlock)} to={count(after.largestFreeBlock)} />
            </span>
          </div>
        </>
      ) : (
        <Text fz="sm" c="dimmed">
          How full it is cannot be told: the pool cannot be read.
        </Text>
      )}
      {segments?.start && <PlannedLayout segments={segments} planned={planned} />}
    </div>
  );
}

function BeforeAfter({
  before,
  after,
  tier,
}: {
  before: NonNullable<PlannedPool["before"]>;
  after: NonNullable<PlannedPool["after"]>;
  tier: Tier | null;
}) {
  const then = share(after);
  // Both on the scale of the pool as it will be, as an edit may change its size.
  const already = Math.min(then, share({ allocated: before.allocated, total: after.total }));
  return (
    <>
      <Text fz="xs" mt={4} className="numbers">
        <strong>
          <Move from={percent(share(before))} to={percent(then)} />
        </strong>
      </Text>
      <div className={classes.meter} aria-hidden>
        <div className={classes.before} style={{ width: `${already}%` }} />
        <div
          className={classes.added}
          data-tier={tier ?? undefined}
          style={{ left: `${already}%`, width: `${then - already}%` }}
        />
        {TIERS.map((mark) => (
          <span
            key={mark.tier}
            className={classes.mark}
            style={{ left: `${mark.percent}%` }}
            title={`${mark.percent}%: ${tierInWords(mark.tier)}`}
          />
        ))}
      </div>
    </>
  );
}

/** `50% → 75%`, or one figure where nothing changes. */
function Move({ from, to }: { from: string; to: string }) {
  if (from === to) return from;
  return (
    <>
      {from} <span aria-hidden>→</span>
      <span className="visually-hidden">goes to</span> {to}
    </>
  );
}

function heldOf({ allocated, total }: { allocated: number; total: number }): string {
  return `${count(allocated)} of ${count(total)}`;
}

function share({ allocated, total }: { allocated: number; total: number }): number {
  return total > 0 ? (100 * allocated) / total : 0;
}

function highest(tiers: Tier[] | undefined): Tier | null {
  return TIERS.findLast(({ tier }) => tiers?.includes(tier))?.tier ?? null;
}
