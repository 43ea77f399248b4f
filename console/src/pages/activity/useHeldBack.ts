// Keeps a list still while a person reads further down: what comes in meanwhile is counted, and shown when they are
// back at the top. What is known already goes on being brought up to date.
import { useState } from "react";

interface Identified {
  id: string;
}

/** `question` names what was asked: with another one, nothing is held back. */
export function useHeldBack<Item extends Identified>(items: Item[] | undefined, hold: boolean, question: string) {
  const [seen, setSeen] = useState<{ question: string; ids: string[] }>({ question: "", ids: [] });
  const now = items ?? [];
  if (items && (!hold || seen.question !== question) && !isSame(seen, now, question)) {
    setSeen({ question, ids: now.map(({ id }) => id) });
  }
  return hold && seen.question === question ? heldBack(now, seen.ids) : { shown: now, fresh: 0 };
}

/** What of a list, newest first, was seen already, and how many came since. */
export function heldBack<Item extends Identified>(
  items: Item[],
  seen: readonly string[],
): { shown: Item[]; fresh: number } {
  const known = new Set(seen);
  const shown = items.filter(({ id }) => known.has(id));
  return { shown, fresh: items.length - shown.length };
}

function isSame(seen: { question: string; ids: string[] }, items: Identified[], question: string): boolean {
  return (
    seen.question === question &&
    seen.ids.length === items.length &&
    items.every(({ id }, index) => id === seen.ids[index])
  );
}
