// The answer about an address in a sentence.
import type { AddressAnswer, Place } from "../../api/types";
import type { Health } from "../../components/StatusBadge";
import { plural, rangeInWords } from "../../words";

export interface Verdict {
  health: Health;
  sentence: string;
}

/** What a place is, in words. */
export function placeInWords({
  kind,
  description,
  stranded,
}: Pick<Place, "kind" | "description" | "stranded">): string {
  if (stranded) return "held, although the pool does not hand it out";
  return KINDS[kind] ? KINDS[kind] + (kind === "reserved" && description ? `: ${description}` : "") : kind;
}

const KINDS: Record<string, string> = {
  allocated: "held",
  granting: "being granted",
  draining: "going back",
  free: "free",
  reserved: "reserved",
  outside: "not handed out",
  none: "in no pool",
};

export function verdictOf(answer: AddressAnswer): Verdict {
  const { asked, places, nearestPool } = answer;
  const text = rangeInWords(asked.start, asked.end);
  const [only] = places;
  if (only && places.length === 1) {
    const holders = [...new Set(only.owners.map(({ tenant }) => tenant))];
    if (holders.length > 1)
      return { health: "critical", sentence: `${text} is held by ${holders.join(" and ")} at once: this is a fault` };
    if (holders[0] !== undefined)
      return {
        health: only.stranded ? "warning" : "ok",
        sentence: `${text} is ${words(only)} ${only.kind === "draining" ? "from" : only.kind === "granting" ? "to" : "by"} ${holders[0]}`,
      };
    if (only.kind === "none")
      return {
        health: "unknown",
        sentence: `${text} is in no pool${nearestPool ? `; the nearest is ${nearestPool.name}, ${nearestPool.cidr}` : ""}`,
      };
    return { health: "info", sentence: `${text} is ${placeInWords(only)}` };
  }
  return { health: "info", sentence: `${text}: ${totals(places)}` };
}

function words({ kind, stranded }: Place): string {
  return stranded ? "held, although its pool does not hand it out," : (KINDS[kind] ?? kind);
}

/** `12 held, 4 free` of a range. */
function totals(places: Place[]): string {
  const sums = new Map<string, number>();
  for (const { kind, count } of places) {
    const name = KINDS[kind] ?? kind;
    sums.set(name, (sums.get(name) ?? 0) + count);
  }
  const parts = [...sums].map(([name, count]) => `${plural(count, "address", "addresses")} ${name}`);
  return parts.length > 0 ? parts.join(", ") : "nothing is known of it";
}
