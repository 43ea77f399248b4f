// Addresses held over time: steps, as addresses come and go at once, with the marks from which on the pool is too full.
import { AreaChart } from "@mantine/charts";
import { Text } from "@mantine/core";
import "@mantine/charts/styles.css";
import type { History, TierMark } from "../../../api/types";
import { compact, count, fullTime, tierInWords } from "../../../words";

const DAY_MS = 86_400_000;

export function HistoryPlot({ history, tiers }: { history: History; tiers: TierMark[] }) {
  const { points, total } = history;
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || points.length < 2) return <Text c="dimmed">There is no record to draw yet.</Text>;
  const most = Math.max(...points.map(({ allocated }) => allocated));
  const short = Date.parse(last.at) - Date.parse(first.at) < 2 * DAY_MS;
  return (
    <figure style={{ margin: 0 }}>
      <AreaChart
        h={240}
        data={points.map(({ at, allocated }) => ({ at: Date.parse(at), allocated }))}
        dataKey="at"
        series={[{ name: "allocated", label: "held", color: "ink.5" }]}
        curveType="stepAfter"
        withDots={false}
        strokeWidth={1.6}
        fillOpacity={0.18}
        areaProps={{ isAnimationActive: false }}
        valueFormatter={count}
        xAxisProps={{
          type: "number",
          scale: "time",
          domain: ["dataMin", "dataMax"],
          tickFormatter: (at: number) => tick(at, short),
          minTickGap: 48,
        }}
        yAxisProps={{ domain: [0, total ?? most], tickFormatter: compact, width: 48 }}
        tooltipProps={{ labelFormatter: timeOf }}
        referenceLines={tiers.map(({ addresses, percent, tier }) => ({
          y: addresses,
          label: `${percent}% ${tierInWords(tier)}`,
          labelPosition: "insideTopRight" as const,
          color: "var(--mantine-color-dimmed)",
          strokeDasharray: "4 4",
        }))}
      />
      <figcaption className="visually-hidden">
        From {fullTime(first.at)} to {fullTime(last.at)}: {count(first.allocated)} addresses at first,{" "}
        {count(last.allocated)} now, at most {count(most)}
        {total === null ? "" : ` of ${count(total)}`}.
      </figcaption>
    </figure>
  );
}

/** Before anything is pointed at, the library asks with nothing. */
function timeOf(at: unknown): string {
  return typeof at === "number" ? fullTime(new Date(at).toISOString()) : "";
}

function tick(at: number, short: boolean): string {
  const date = new Date(at);
  return short
    ? date.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false })
    : date.toLocaleDateString("en", { month: "short", day: "numeric" });
}
