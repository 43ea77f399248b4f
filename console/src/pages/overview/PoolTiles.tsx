// Pools side by side: where in each network it is full, and where there is room.
import { Link } from "react-router";
import { PoolStrip } from "../../address-space/PoolStrip";
import type { PoolItem } from "../../api/types";
import { StatusBadge } from "../../components/StatusBadge";
import { paths } from "../../paths";
import { compact, percent, plural } from "../../words";
import { PoolState } from "../pools/PoolState";
import classes from "./overview.module.css";

export function PoolTiles({ pools }: { pools: PoolItem[] }) {
  return (
    <ul className={classes.tiles}>
      {pools.map((pool) => (
        <li key={`${pool.namespace}/${pool.name}`}>
          <Link to={paths.pool(pool.namespace, pool.name)} className={classes.tile}>
            <div className={classes.tileHead}>
              <span className={classes.tileName}>{pool.name}</span>
              <PoolState pool={pool} plain />
            </div>
            <PoolStrip strip={pool.strip} height={22} />
            <div className={classes.tileFoot}>
              <span className="mono">{pool.cidr}</span>
              <span>
                {percent(pool.percent)} held, {pool.available === null ? "not known" : compact(pool.available)} free
              </span>
            </div>
            {pool.waiting > 0 && (
              <StatusBadge health="warning" plain>{`${plural(pool.waiting, "request")} waiting`}</StatusBadge>
            )}
          </Link>
        </li>
      ))}
    </ul>
  );
}
