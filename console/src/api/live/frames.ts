// What the live stream sends: the names that the console has for these types of the API, and reading a frame.
import type { Changed, Frame } from "../types";

export type { Changed, Frame };
export type StreamKind = Changed["kind"];
export type StreamItem = NonNullable<Changed["item"]>;

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
