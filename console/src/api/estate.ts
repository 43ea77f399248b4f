// What spans all kinds: the overview, the search, single addresses, plans and the record of what happened.
import { keepPreviousData, skipToken, useQuery } from "@tanstack/react-query";
import { api, asFilters, dataOf } from "./client";
import { keys } from "./keys";
import type { PlanRequest } from "./types";

export function useOverview() {
  return useQuery({ queryKey: keys.overview, queryFn: () => dataOf(api.GET("/api/v1/overview")) });
}

/** What a text may mean; an empty one means nothing and is not asked. */
export function useSearch(text: string) {
  return useQuery({
    queryKey: keys.search(text),
    queryFn: text ? () => dataOf(api.GET("/api/v1/search", { params: { query: { q: text } } })) : skipToken,
    placeholderData: text ? keepPreviousData : undefined,
  });
}

/** Whose an address, range or network is; an empty text is not asked. */
export function useAddress(address: string) {
  return useQuery({
    queryKey: keys.address(address),
    queryFn: address
      ? () => dataOf(api.GET("/api/v1/addresses/{address}", { params: { path: { address } } }))
      : skipToken,
  });
}

export interface ActivityQuery {
  kind?: string;
  namespace?: string;
  name?: string;
  severity?: string;
  q?: string;
  limit?: number;
  cursor?: string;
}

export function useActivity(query: ActivityQuery) {
  return useQuery({
    queryKey: keys.list("activity", query),
    queryFn: () => dataOf(api.GET("/api/v1/activity", { params: { query: asFilters(query) } })),
    placeholderData: keepPreviousData,
  });
}

/** What would happen; null asks nothing. */
export function usePlan(body: PlanRequest | null) {
  return useQuery({
    queryKey: ["preview", "plan", body],
    queryFn: body ? () => dataOf(api.POST("/api/v1/plan", { body })) : skipToken,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}
