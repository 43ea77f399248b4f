// Pools: lists, everything about one, and what an edit would do.
import { keepPreviousData, queryOptions, skipToken, useMutation, useQuery } from "@tanstack/react-query";
import { api, dataOf, ifMatch } from "./client";
import { keys, type ListQuery } from "./keys";
import type { PoolCreate, PoolEdit } from "./types";

export function usePools(query: ListQuery = {}) {
  return useQuery({
    queryKey: keys.list("pools", query),
    queryFn: () => dataOf(api.GET("/api/v1/pools", { params: { query } })),
    placeholderData: keepPreviousData,
  });
}

export function usePool(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.one("pools", namespace, name),
    queryFn: () => dataOf(api.GET("/api/v1/pools/{namespace}/{name}", at(namespace, name))),
  });
}

export function segmentsQuery(namespace: string, name: string) {
  return queryOptions({
    queryKey: keys.part("pools", namespace, name, "segments"),
    queryFn: () => dataOf(api.GET("/api/v1/pools/{namespace}/{name}/segments", at(namespace, name))),
    // A hundred thousand numbers: comparing them with the last answer would cost more than it saves.
    structuralSharing: false,
  });
}

export function useSegments(namespace: string, name: string) {
  return useQuery(segmentsQuery(namespace, name));
}

export interface RowsQuery {
  start?: string;
  end?: string;
  limit?: number;
  cursor?: string;
}

export function useSegmentRows(namespace: string, name: string, query: RowsQuery) {
  return useQuery({
    queryKey: keys.part("pools", namespace, name, "rows", query),
    queryFn: () =>
      dataOf(
        api.GET("/api/v1/pools/{namespace}/{name}/segments/rows", { params: { path: { namespace, name }, query } }),
      ),
    placeholderData: keepPreviousData,
  });
}

export function useAdvice(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.part("pools", namespace, name, "advice"),
    queryFn: () => dataOf(api.GET("/api/v1/pools/{namespace}/{name}/advice", at(namespace, name))),
  });
}

export function useForecast(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.part("pools", namespace, name, "forecast"),
    queryFn: () => dataOf(api.GET("/api/v1/pools/{namespace}/{name}/forecast", at(namespace, name))),
  });
}

export function useHistory(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.part("pools", namespace, name, "history"),
    queryFn: () => dataOf(api.GET("/api/v1/pools/{namespace}/{name}/history", at(namespace, name))),
  });
}

export function useFreeBlocks(namespace: string, name: string, query: { size?: number; align?: boolean }) {
  return useQuery({
    queryKey: keys.part("pools", namespace, name, "free", query),
    queryFn: () =>
      dataOf(api.GET("/api/v1/pools/{namespace}/{name}/free", { params: { path: { namespace, name }, query } })),
    placeholderData: keepPreviousData,
  });
}

export function useOverlaps() {
  return useQuery({ queryKey: keys.overlaps, queryFn: () => dataOf(api.GET("/api/v1/overlaps")) });
}

/** What a new pool would be; null asks nothing, as long as the form is not filled in. */
export function useNewPoolPreview(body: PoolCreate | null) {
  return useQuery({
    queryKey: ["preview", "pool", body],
    queryFn: body ? () => dataOf(api.POST("/api/v1/pools/preview", { body })) : skipToken,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

/** What an edit would do; null asks nothing. */
export function usePoolEditPreview(namespace: string, name: string, body: PoolEdit | null) {
  return useQuery({
    queryKey: keys.part("pools", namespace, name, "preview", body ?? {}),
    queryFn: body
      ? () => dataOf(api.POST("/api/v1/pools/{namespace}/{name}/preview", { ...at(namespace, name), body }))
      : skipToken,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

export function useCreatePool() {
  return useMutation({ mutationFn: (body: PoolCreate) => dataOf(api.POST("/api/v1/pools", { body })) });
}

export function useEditPool(namespace: string, name: string) {
  return useMutation({
    mutationFn: ({ body, resourceVersion }: { body: PoolEdit; resourceVersion: string }) =>
      dataOf(
        api.PATCH("/api/v1/pools/{namespace}/{name}", {
          ...at(namespace, name),
          headers: ifMatch(resourceVersion),
          body,
        }),
      ),
  });
}

export function useDeletePool(namespace: string, name: string) {
  return useMutation({
    mutationFn: (resourceVersion: string) =>
      dataOf(
        api.DELETE("/api/v1/pools/{namespace}/{name}", { ...at(namespace, name), headers: ifMatch(resourceVersion) }),
      ),
  });
}

function at(namespace: string, name: string) {
  return { params: { path: { namespace, name } } };
}
