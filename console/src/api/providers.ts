// Providers: where tenants go.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { keys, type ListQuery } from "./keys";

export function useProviders(query: ListQuery = {}) {
  return useQuery({
    queryKey: keys.list("providers", query),
    queryFn: () => dataOf(api.GET("/api/v1/providers", { params: { query } })),
    placeholderData: keepPreviousData,
  });
}

export function useProvider(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.one("providers", namespace, name),
    queryFn: () => dataOf(api.GET("/api/v1/providers/{namespace}/{name}", { params: { path: { namespace, name } } })),
  });
}
