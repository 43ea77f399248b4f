// A pool in figures: how full, how much is left in one piece, who waits.
import { Anchor } from "@mantine/core";
import { Link } from "react-router";
import { UsageMeter } from "../../../address-space/UsageMeter";
import type { PoolDetail } from "../../../api/types";
import { Stat, Stats } from "../../../components/Stat";
import { count } from "../../../words";
import classes from "../pools.module.css";

export function Glance({ detail }: { detail: PoolDetail }) {
  const { pool, tiers } = detail;
  return (
    <section aria-label="At a glance" className={classes.glance}>
      {pool.total !== null && pool.allocated !== null && (
        <UsageMeter allocated={pool.allocated} total={pool.total} tier={pool.tier} marks={tiers} />
      )}
      <Stats>
        <Stat label="Free" value={count(pool.available)} />
        <Stat label="Largest free block" value={count(pool.largestFreeBlock)} hint="addresses in one piece" />
        <Stat
          label="Scattered"
          value={pool.fragmentationPercent === null ? "not known" : `${pool.fragmentationPercent}%`}
          hint="of what is free lies outside that block"
        />
        <Stat
          label="Allocations"
          value={
            <Anchor component={Link} to="?tab=allocations" inherit>
              {count(pool.allocationCount)}
            </Anchor>
          }
          hint={pool.waiting > 0 ? `${count(pool.waiting)} waiting` : "none is waiting"}
        />
      </Stats>
    </section>
  );
}
