// How full a pool is, with the marks from which on it counts as filling up, nearly full and full. Words come first.
import { Text, Tooltip } from "@mantine/core";
import type { Tier, TierMark } from "../api/types";
import { count, percent, tierInWords } from "../words";
import classes from "./UsageMeter.module.css";

interface UsageMeterProps {
  allocated: number;
  total: number;
  tier: Tier | null;
  /** Where the marks are; none in lists, where there is no room for them. */
  marks?: TierMark[];
}

export function UsageMeter({ allocated, total, tier, marks = [] }: UsageMeterProps) {
  const used = total > 0 ? (100 * allocated) / total : 0;
  const state = tier ? tierInWords(tier) : "";
  return (
    <div className={classes.meter}>
      <div className={classes.words}>
        <strong>{percent(used)}</strong>
        {state && <span data-tier={tier}>{state}</span>}
        {marks.length > 0 && (
          <Text span fz="xs" c="dimmed" inherit={false}>
            {count(allocated)} of {count(total)} addresses held
          </Text>
        )}
      </div>
      <div
        role="meter"
        aria-label="Addresses held"
        aria-valuenow={Math.round(used)}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuetext={`${percent(used)}, ${count(allocated)} of ${count(total)} addresses${state && `, ${state}`}`}
        className={classes.track}
      >
        <div className={classes.fill} data-tier={tier ?? "none"} style={{ width: `${used}%` }} />
        {marks.map((mark) => (
          <Tooltip
            key={mark.tier}
            label={`${tierInWords(mark.tier)} from ${mark.percent}% on: ${count(mark.addresses)} addresses`}
          >
            <span
              className={classes.mark}
              style={{ left: `${mark.percent}%` }}
              data-reached={mark.reached || undefined}
            />
          </Tooltip>
        ))}
      </div>
      {marks.length > 0 && (
        <ul className={classes.marks}>
          {marks.map((mark) => (
            <li key={mark.tier}>
              {mark.percent}% {tierInWords(mark.tier)}
              {mark.reached ? " (reached)" : ""}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
