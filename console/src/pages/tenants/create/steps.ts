// The steps of a new tenant, and which fields each has.
import type { FormField } from "./tenantForm";

export const STEPS = [
  { id: "basics", title: "Basics", fields: ["name", "namespace", "team", "version"] },
  { id: "provider", title: "Provider", fields: ["provider", "providerNamespace"] },
  { id: "workers", title: "Workers", fields: ["workers", "cpu", "memory", "disk"] },
  { id: "networking", title: "Networking", fields: ["lbPoolSize"] },
  { id: "review", title: "Review", fields: [] },
] as const satisfies { id: string; title: string; fields: readonly FormField[] }[];

export type Step = (typeof STEPS)[number];
