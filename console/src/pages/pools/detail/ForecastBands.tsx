// When the pool reaches each mark: as a band of days on a line from now to the horizon, and in words.
import { Text } from "@mantine/core";
import type { Forecast } from "../../../api/types";
import { count, daysInWords, percent, plural, tierInWords } from "../../../words";
import classes from "./ForecastBands.module.css";

type Days = Forecast["tiers"][number]["days"];

interface Coming {
  key: string;
  title: string;
  now: boolean;
  days: Days;
  share: number;
}

export function ForecastBands({ forecast }: { forecast: Forecast }) {
  if (forecast.problem) return <Text>{forecast.problem}</Text>;
  const { horizonDays: horizon, record, netAddressesPerDay: pace } = forecast;
  const coming: Coming[] = [
    ...forecast.tiers.map((tier) => ({
      ...tier,
      key: tier.tier,
      title: `${tierInWords(tier.tier)}, ${tier.percent}% held`,
    })),
    ...forecast.refusals.map((refusal) => ({
      ...refusal,
      key: String(refusal.size),
      title: `no block of ${count(refusal.size)} left`,
    })),
  ];
  return (
    <>
      <ul className={classes.list}>
        {coming.map((each) => (
          <li key={each.key}>
            <div className={classes.words}>
              <strong>{each.title}</strong>
              <span>{inWords(each, horizon)}</span>
            </div>
            <Band coming={each} horizon={horizon} />
          </li>
        ))}
      </ul>
      <div className={classes.axis} aria-hidden>
        <span>now</span>
        <span>in {daysInWords(horizon)}</span>
      </div>
      <Text fz="xs" c="dimmed" mt="xs">
        {pace &&
          `The pool grows by about ${oneDigit(pace.median)} addresses a day (${oneDigit(pace.low)} to ${oneDigit(pace.high)}). `}
        {record && `The record is ${daysInWords(record.days)} long, with ${plural(record.arrivals, "request")}. `}
        Bands hold {forecast.bandPercent}% of {count(forecast.futures)} futures.
      </Text>
    </>
  );
}

function inWords({ now, days, share }: Coming, horizon: number): string {
  if (now) return "now";
  if (days.median === null) {
    return share > 0
      ? `perhaps: in ${percent(100 * share)} of the futures within ${daysInWords(horizon)}`
      : `not within ${daysInWords(horizon)}`;
  }
  const earliest = days.low === null ? "" : `earliest in ${daysInWords(days.low)}`;
  const latest = days.high === null ? "perhaps not at all" : `latest in ${daysInWords(days.high)}`;
  return `in about ${daysInWords(days.median)} (${[earliest, latest].filter(Boolean).join(", ")})`;
}

function Band({ coming, horizon }: { coming: Coming; horizon: number }) {
  const at = (days: number) => `${Math.min(100, (100 * days) / horizon)}%`;
  const { low, median, high } = coming.now ? { low: 0, median: 0, high: 0 } : coming.days;
  return (
    <div className={classes.track} aria-hidden>
      {low !== null && (
        <div
          className={classes.band}
          style={{ left: at(low), right: `calc(100% - ${at(high ?? horizon)})` }}
          data-open={high === null || undefined}
        />
      )}
      {median !== null && <div className={classes.median} style={{ left: at(median) }} />}
    </div>
  );
}

function oneDigit(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}
