// What a frame of the live stream means for what is loaded: pure, so that it can be tested without a server.
// A change is first put into the lists and objects on the page as it came (patch), then everything that depends on
// it is asked for again (staleAfter): counters, maps and forecasts are computed by the server alone.
import type { Page } from "../types";
import { LIST_OF, type Changed, type StreamItem, type StreamKind } from "./frames";

/** Words of a query's key; `*` stands for any word. It also covers all longer keys. */
export type Pattern = readonly string[];

export function matches(pattern: Pattern, key: readonly unknown[]): boolean {
  return pattern.length <= key.length && pattern.every((word, index) => word === "*" || word === key[index]);
}

/** What has to be asked for again after a change. */
export function staleAfter(change: Changed): Pattern[] {
  const stale: Pattern[] = [[LIST_OF[change.kind], "list"]];
  if (change.kind === "activity") return [...stale, ["overview"]];
  stale.push([LIST_OF[change.kind], "one", change.namespace, change.name], ["overview"]);
  for (const pool of change.pools) stale.push(["pools", "one", "*", pool]);
  for (const tenant of change.tenants) {
    const [namespace = "", name = ""] = tenant.split("/");
    stale.push(["tenants", "one", namespace, name]);
  }
  if (change.kind === "pool") stale.push(["overlaps"], ["providers"], ["address"], ["search"], ["preview"]);
  if (change.kind === "allocation") stale.push(["address"], ["search"], ["drift"], ["preview"]);
  if (change.kind === "tenant") stale.push(["drift"], ["search"]);
  return unique(stale);
}

/** What has to be asked for again when the past of these kinds is no longer known. */
export function staleAfterReset(kinds: readonly StreamKind[]): Pattern[] {
  const stale: Pattern[] = kinds.map((kind) => [LIST_OF[kind]]);
  if (kinds.includes("allocation")) stale.push(["pools"], ["tenants"]);
  return unique([...stale, ["overview"], ["overlaps"], ["drift"], ["address"], ["search"], ["preview"]]);
}

/** A page of a list with the change in it; the same page where it is not concerned. */
export function patchPage<Item extends object>(page: Page<Item>, change: Changed): Page<Item> {
  const at = page.items.findIndex((item) => isAbout(item, change));
  if (at < 0) return page;
  if (change.item === null) {
    return { ...page, items: page.items.toSpliced(at, 1), total: Math.max(0, page.total - 1) };
  }
  return { ...page, items: page.items.with(at, change.item as unknown as Item) };
}

/** An object's own answer with the change in it. Details hold the item of the list in a field named by its kind. */
export function patchOne(loaded: object, change: Changed): object {
  if (change.item === null) return loaded;
  if (change.kind === "allocation") return change.item;
  return change.kind in loaded ? { ...loaded, [change.kind]: change.item } : loaded;
}

function isAbout(item: object, change: Changed): boolean {
  if (change.kind === "activity") {
    return change.item !== null && (item as { id: string }).id === (change.item as { id: string }).id;
  }
  const named = item as Exclude<StreamItem, { about: unknown }>;
  return named.name === change.name && named.namespace === change.namespace;
}

function unique(patterns: Pattern[]): Pattern[] {
  return [...new Map(patterns.map((pattern) => [pattern.join("\n"), pattern])).values()];
}
