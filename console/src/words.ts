// Numbers, times and states in words.
import type { Owner, Tier } from "./api/types";

const numbers = new Intl.NumberFormat("en");
const compactNumbers = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const absolute = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

export function count(value: number | null | undefined): string {
  return value == null ? "not known" : numbers.format(value);
}

export function compact(value: number): string {
  return compactNumbers.format(value);
}

/** `1 address`, `1,234 addresses`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${numbers.format(value)} ${value === 1 ? one : many}`;
}

/** Rounded down, as everywhere in Butler: full only when full, and empty only when empty. */
export function percent(value: number | null | undefined): string {
  if (value == null) return "not known";
  if (value > 0 && value < 1) return "<1%";
  return `${Math.floor(value)}%`;
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Infinity],
];

/** `3m ago`, `in 2h`. */
export function ago(at: string, now: number): string {
  let value = (Date.parse(at) - now) / 1000;
  for (const [unit, size] of STEPS) {
    if (Math.abs(value) < size)
      return unit === "second" && Math.abs(value) < 5 ? "now" : relative.format(Math.round(value), unit);
    value /= size;
  }
  return at;
}

export function fullTime(at: string): string {
  return absolute.format(new Date(at));
}

/** `4 hours`, `9 days`, `3 months`: a length of time, roughly. */
export function daysInWords(days: number): string {
  if (days < 1 / 24) return "less than an hour";
  if (days < 2) return plural(Math.round(days * 24), "hour");
  if (days < 60) return plural(Math.round(days), "day");
  return plural(Math.round(days / 30.4), "month");
}

/** `10.0.0.1`, or `10.0.0.1–10.0.0.9`. */
export function rangeInWords(start: string, end: string): string {
  return start === end ? start : `${start}–${end}`;
}

const TYPES: Record<string, string> = { nodes: "nodes", loadbalancer: "load balancers" };

/** What addresses are for. */
export function typeInWords(type: string): string {
  return TYPES[type] ?? type;
}

const TENANTS: Record<Owner["tenantIs"], string> = {
  exists: "The tenant that it was made for exists.",
  gone: "The tenant that it was made for is gone.",
  replaced: "The tenant that it was made for is gone, and another one has its name.",
  unseen: "Butler cannot see whether this is in use: it was made for a cluster that Butler does not manage.",
};

/** Whether the tenant of an allocation is there, in a sentence: what is not known is not called gone, or unused. */
export function tenantInWords(tenantIs: Owner["tenantIs"]): string {
  return TENANTS[tenantIs];
}

const TIERS: Record<Tier, string> = {
  CapacityWarning: "filling up",
  CapacityCritical: "nearly full",
  CapacityExhausted: "full",
};

export function tierInWords(tier: Tier): string {
  return TIERS[tier];
}
