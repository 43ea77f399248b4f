// What a list shows. Filters and order are kept in the page's address, so that they can be shared and gone back to.
import { useMemo, useState } from "react";
import { useLocation, useNavigation, useSearchParams } from "react-router";

export interface ListState {
  /** The value of a filter; empty for none. */
  get: (name: string) => string;
  /** What to send to the server for these filters. */
  filters: <Name extends string>(names: readonly Name[]) => Record<Name, string | undefined>;
  /** Whether any of these filters is set. */
  has: (names: readonly string[]) => boolean;
  /** Sets filters, or clears them with "", and goes to the first page. */
  set: (values: Record<string, string>) => void;
  /** A field, or `-field` for the other way round. */
  sort: string;
  /** What to send to the server for this page. */
  cursor: string | undefined;
  /** How many pages come before this one. */
  page: number;
  toNext: (cursor: string) => void;
  toPrevious: () => void;
}

/** `prefix` keeps two lists on one page apart. */
export function useListState(defaultSort: string, prefix = ""): ListState {
  const [params, setParams] = useSearchParams();
  const { pathname } = useLocation();
  const { location: coming = window.location } = useNavigation();
  // Cursors of the pages up to this one; the first page has none.
  const [trail, setTrail] = useState<string[]>([]);
  return useMemo(() => {
    const get = (name: string) => params.get(prefix + name) ?? "";
    return {
      get,
      filters: <Name extends string>(names: readonly Name[]) =>
        Object.fromEntries(names.map((name) => [name, get(name) || undefined])) as Record<Name, string | undefined>,
      has: (names) => names.some((name) => get(name) !== ""),
      set: (values) => {
        // Another page is on its way while this one is still seen: its address is not this list's to change.
        if (coming.pathname !== pathname) return;
        setTrail([]);
        setParams((old) => withValues(old, prefix, values), { replace: true, preventScrollReset: true });
      },
      sort: get("sort") || defaultSort,
      cursor: trail.at(-1),
      page: trail.length,
      toNext: (cursor) => setTrail([...trail, cursor]),
      toPrevious: () => setTrail(trail.slice(0, -1)),
    };
  }, [params, setParams, pathname, coming, trail, defaultSort, prefix]);
}

function withValues(params: URLSearchParams, prefix: string, values: Record<string, string>): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") next.delete(prefix + name);
    else next.set(prefix + name, value);
  }
  return next;
}
