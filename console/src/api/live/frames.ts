// What the live stream sends. It is no part of the OpenAPI document, so it is written down here.
import type { ActivityItem, AllocationItem, PoolItem, ProviderItem, TenantItem } from "../types";

export type StreamKind = "pool" | "allocation" | "tenant" | "provider" | "activity";

export type StreamItem = PoolItem | AllocationItem | TenantItem | ProviderItem | ActivityItem;

interface Placed {
  position: string;
  heard: string;
}

export interface Changed extends Placed {
  type: "changed";
  kind: StreamKind;
  namespace: string;
  name: string;
  /** Null: the object is gone. */
  item: StreamItem | null;
  /** Names of pools whose map, counters or forecast this concerns. */
  pools: string[];
  /** Tenants that it concerns, as `namespace/name`. */
  tenants: string[];
}

export type Frame =
  | ({ type: "hello"; kinds: StreamKind[] } & Placed)
  | ({ type: "reset"; kinds: StreamKind[] } & Placed)
  | ({ type: "beat" } & Placed)
  | Changed;

export const LIST_OF = {
  pool: "pools",
  allocation: "allocations",
  tenant: "tenants",
  provider: "providers",
  activity: "activity",
} as const satisfies Record<StreamKind, string>;

/** The frame in a message; null for what this console does not know, as a newer server may send. */
export function readFrame(text: string): Frame | null {
  try {
    const frame = JSON.parse(text) as Frame;
    return ["hello", "reset", "beat", "changed"].includes(frame.type) ? frame : null;
  } catch {
    return null;
  }
}
