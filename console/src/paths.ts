// Addresses of pages, so that no page spells out another's.
import type { Link } from "./api/types";

const part = encodeURIComponent;

export const paths = {
  overview: "/",
  pools: "/pools",
  newPool: "/pools?new",
  pool: (namespace: string, name: string) => `/pools/${part(namespace)}/${part(name)}`,
  tenants: "/tenants",
  newTenant: "/tenants/new",
  tenant: (namespace: string, name: string) => `/tenants/${part(namespace)}/${part(name)}`,
  plan: "/plan",
  providers: "/providers",
  provider: (namespace: string, name: string) => `/providers/${part(namespace)}/${part(name)}`,
  addresses: "/addresses",
  /** An address, range, network or name. `/addresses/10.0.0.1` leads there, too. */
  address: (address: string) => `/addresses?q=${part(address)}`,
  allocations: "/allocations",
  allocation: (namespace: string, name: string) => `/allocations/${part(namespace)}/${part(name)}`,
  activity: "/activity",
  sessions: "/sessions",
  login: "/login",
};

/** The page of an object. */
export function pathOf({ kind, namespace, name }: Link): string {
  return paths[kind](namespace, name);
}

/** The page of a tenant that is spelled `namespace/name`. */
export function pathOfTenant(tenant: string): string {
  const [namespace = "", name = ""] = tenant.split("/");
  return paths.tenant(namespace, name);
}
