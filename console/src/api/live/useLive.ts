// Joins the live stream with what is loaded. Used once, by the shell; pages need nothing of it but useLiveState.
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { setHeard } from "../client";
import { keys } from "../keys";
import type { Page } from "../types";
import { LiveConnection, type LiveState } from "./connection";
import { matches, patchOne, patchPage, staleAfter, staleAfterReset, type Pattern } from "./effects";
import { LIST_OF, type Changed, type Frame } from "./frames";
import { Refresher, type Loaded } from "./refresher";

let state: LiveState = "connecting";
const listeners = new Set<() => void>();

function setState(next: LiveState): void {
  state = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(subscribe, () => state);
}

/** Keeps everything that is loaded up to date as long as the shell is there. */
export function useLiveStream(): void {
  const client = useQueryClient();
  useEffect(() => {
    const refresher = new Refresher((pattern) => loadedUnder(client, pattern));
    let streamedBefore = false;
    const connection = new LiveConnection({
      onState: setState,
      onRefused: () => void client.invalidateQueries({ queryKey: keys.me }),
      onFrame: (frame) => {
        setHeard(frame.heard);
        // What was loaded before the first hello may be older than where the stream begins.
        if (frame.type === "hello" && !streamedBefore) {
          streamedBefore = true;
          refresher.add(staleAfterReset(frame.kinds));
        }
        takeIn(client, refresher, frame);
      },
    });
    connection.start();
    return () => {
      connection.stop();
      refresher.stop();
    };
  }, [client]);
}

function takeIn(client: QueryClient, refresher: Refresher, frame: Frame): void {
  if (frame.type === "reset") refresher.add(staleAfterReset(frame.kinds));
  if (frame.type !== "changed") return;
  patch(client, frame);
  refresher.add(staleAfter(frame));
}

function patch(client: QueryClient, change: Changed): void {
  const kind = LIST_OF[change.kind];
  client.setQueriesData<Page<object>>({ queryKey: [kind, "list"] }, (page) => page && patchPage(page, change));
  if (change.kind === "activity") return;
  const one = keys.one(kind as Exclude<typeof kind, "activity">, change.namespace, change.name);
  client.setQueriesData<object>({ queryKey: one, exact: true }, (loaded) => loaded && patchOne(loaded, change));
}

/** Every answer under a pattern by itself, so that a slow forecast does not hold up the map beside it. */
function loadedUnder(client: QueryClient, pattern: Pattern): Loaded[] {
  const found = client.getQueryCache().findAll({ predicate: (query) => matches(pattern, query.queryKey) });
  return found.map(({ queryHash, queryKey }) => ({
    id: queryHash,
    ask: () => client.invalidateQueries({ queryKey, exact: true }),
  }));
}
