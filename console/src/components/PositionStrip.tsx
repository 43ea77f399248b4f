// Where in a pool some blocks are, in true positions.
import { Text } from "@mantine/core";
import { parseAddress } from "../address-space/addresses";
import { usePool } from "../api/pools";
import { useSignedIn } from "../api/session";
import type { AddressRange, Block, PoolDetail } from "../api/types";
import { ObjectLink } from "./ObjectLink";
import { count, plural, rangeInWords } from "../words";
import classes from "./PositionStrip.module.css";

export function PositionStrip({
  pool,
  blocks,
}: {
  pool: string;
  blocks: Pick<Block, "allocation" | "range" | "leaving">[];
}) {
  const { home } = useSignedIn();
  const { data } = usePool(home, pool);
  const held = blocks.flatMap(({ range }) => range ?? []);
  if (!data?.start || held.length === 0) return null;
  return (
    <div>
      <Text fz="xs" mb={2}>
        <ObjectLink link={{ kind: "pool", namespace: home, name: pool }} />{" "}
        <Text span fz="xs" c="dimmed">
          {data.pool.cidr}: {count(held.reduce((sum, range) => sum + range.count, 0))} of{" "}
          {plural(data.count, "address", "addresses")}
        </Text>
      </Text>
      <div
        className={classes.strip}
        role="img"
        aria-label={`Positions in ${pool}: ${held.map(({ start, end }) => rangeInWords(start, end)).join(", ")}`}
      >
        {data.windows.map((window) => (
          <div key={window.start} data-part="window" style={placeOf(window, data)} />
        ))}
        {blocks.map(
          ({ range, allocation, leaving }) =>
            range && (
              <div
                key={allocation}
                data-part="block"
                data-leaving={leaving || undefined}
                style={placeOf(range, data)}
                title={`${allocation}: ${rangeInWords(range.start, range.end)}`}
              />
            ),
        )}
      </div>
      <div className={classes.ends} aria-hidden>
        <span className="mono">{data.start}</span>
        <span className="mono">{data.end}</span>
      </div>
    </div>
  );
}

function placeOf(range: AddressRange, { start, count }: PoolDetail) {
  const offset = (parseAddress(range.start) ?? 0) - (parseAddress(start ?? "") ?? 0);
  return { left: `${(100 * offset) / count}%`, width: `${(100 * range.count) / count}%` };
}
