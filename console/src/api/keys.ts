// Names of everything that is kept of the server's answers. The live stream finds what to refresh by them
// (live/effects.ts): the first word is the kind, the second tells lists (`list`) from single objects (`one`).

export interface ListQuery {
  q?: string;
  sort?: string;
  limit?: number;
  cursor?: string;
}

type ListKind = "pools" | "allocations" | "tenants" | "providers" | "activity";
type OneKind = "pools" | "allocations" | "tenants" | "providers";

export const keys = {
  me: ["me"] as const,
  loginMethods: ["login-methods"] as const,
  sessions: ["sessions"] as const,
  overview: ["overview"] as const,
  overlaps: ["overlaps"] as const,
  drift: ["drift"] as const,
  search: (text: string) => ["search", text] as const,
  address: (address: string) => ["address", address] as const,
  lists: (kind: ListKind) => [kind, "list"] as const,
  list: (kind: ListKind, query: object) => [kind, "list", query] as const,
  one: (kind: OneKind, namespace: string, name: string) => [kind, "one", namespace, name] as const,
  part: (kind: OneKind, namespace: string, name: string, part: string, query?: object) =>
    [kind, "one", namespace, name, part, ...(query ? [query] : [])] as const,
};
