// Free blocks by size: many small ones and no large one is what fragmentation looks like.
import { Text } from "@mantine/core";
import type { HoleBucket } from "../api/types";
import { count } from "../words";
import classes from "./FreeBlockHistogram.module.css";

export function FreeBlockHistogram({ buckets }: { buckets: HoleBucket[] }) {
  if (buckets.every(({ holes }) => holes === 0)) {
    return <Text c="dimmed">No address is free.</Text>;
  }
  const most = Math.max(...buckets.map(({ addresses }) => addresses));
  return (
    <table className={classes.histogram}>
      <caption className="visually-hidden">Free blocks by size</caption>
      <thead>
        <tr>
          <th scope="col">Block size</th>
          <th scope="col" className={classes.number}>
            Blocks
          </th>
          <th scope="col" className={classes.wide}>
            Addresses in them
          </th>
        </tr>
      </thead>
      <tbody>
        {buckets.map((bucket) => (
          <tr key={bucket.least} data-empty={bucket.holes === 0 || undefined}>
            <th scope="row">{sizeOf(bucket)}</th>
            <td className={classes.number}>{count(bucket.holes)}</td>
            <td className={classes.wide}>
              <div className={classes.line}>
                <div className={classes.bar} style={{ flexBasis: `${(80 * bucket.addresses) / most}%` }} />
                {count(bucket.addresses)}
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function sizeOf({ least, most }: HoleBucket): string {
  return least === most ? count(least) : `${count(least)}–${count(most)}`;
}
