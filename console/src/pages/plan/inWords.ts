// The answer in words: one sentence, then what is behind it.
import type { Plan } from "../../api/types";
import { plural } from "../../words";

export interface Verdict {
  title: string;
  lines: string[];
}

export function verdictOf(plan: Plan): Verdict {
  return { title: titleOf(plan), lines: linesOf(plan) };
}

function titleOf({ fits, edit, tenants, tenantsThatFit, requests }: Plan): string {
  if (edit && edit.refused.length > 0) return "The edit would be refused";
  if (tenants.length > 0) {
    const verb = tenants.length === 1 ? "fits" : "fit";
    if (tenantsThatFit === tenants.length)
      return fits ? `${all(tenants.length)} ${verb}` : `${all(tenants.length)} ${verb}, but not all requests do`;
    return tenantsThatFit === 0 ? "None of the tenants fits" : `${tenantsThatFit} of ${tenants.length} tenants fit`;
  }
  if (requests.length > 0)
    return requests.length === 1 ? (fits ? "The request fits" : "The request does not fit") : requestsInWords(requests);
  return "The edit would be accepted";
}

function linesOf({ provider, edit, tenants, firstFailure, orderByChance }: Plan): string[] {
  const lines: string[] = [];
  for (const { field, message } of edit?.refused ?? []) lines.push(field ? `${field}: ${message}` : message);
  lines.push(...(edit?.warnings ?? []));
  if (firstFailure) lines.push(`Tenant ${firstFailure.tenant} is the first that does not: ${firstFailure.message}`);
  if (provider && tenants.length > 0) lines.push(`They go to provider ${provider}.`);
  if (orderByChance)
    lines.push("Some requests ask for the same addresses: which of them comes first is left to chance.");
  return lines;
}

function all(tenants: number): string {
  return tenants === 1 ? "The tenant" : `All ${tenants} tenants`;
}

function requestsInWords(requests: Plan["requests"]): string {
  const fitting = requests.filter(({ range }) => range).length;
  return fitting === requests.length
    ? `All ${requests.length} requests fit`
    : `${fitting} of ${plural(requests.length, "request")} fit`;
}
