// Allocations: lists, what a request would get, and what hangs on a release.
import { keepPreviousData, skipToken, useMutation, useQuery } from "@tanstack/react-query";
import { api, asFilters, dataOf, ifMatch } from "./client";
import { keys, type ListQuery } from "./keys";
import type { AllocationCreate, AllocationItem } from "./types";

export interface AllocationQuery extends ListQuery {
  pool?: string;
  tenant?: string;
  phase?: string;
  type?: string;
  state?: string;
}

export function useAllocations(query: AllocationQuery) {
  return useQuery({
    queryKey: keys.list("allocations", query),
    queryFn: () => dataOf(api.GET("/api/v1/allocations", { params: { query: asFilters(query) } })),
    placeholderData: keepPreviousData,
  });
}

export function useAllocation(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.one("allocations", namespace, name),
    queryFn: () => dataOf(api.GET("/api/v1/allocations/{namespace}/{name}", { params: { path: { namespace, name } } })),
  });
}

/** What a request would get now; null asks nothing. */
export function useAllocationPreview(body: AllocationCreate | null) {
  return useQuery({
    queryKey: ["preview", "allocation", body],
    queryFn: body ? () => dataOf(api.POST("/api/v1/allocations/preview", { body })) : skipToken,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

export function useCreateAllocation() {
  return useMutation({ mutationFn: (body: AllocationCreate) => dataOf(api.POST("/api/v1/allocations", { body })) });
}

/** What hangs on an allocation; asked anew each time the dialog opens. */
export function useReleaseImpact(allocation: Pick<AllocationItem, "namespace" | "name"> | null) {
  return useQuery({
    queryKey: ["preview", "release", allocation?.namespace, allocation?.name],
    queryFn: allocation
      ? () =>
          dataOf(
            api.GET("/api/v1/allocations/{namespace}/{name}/impact", {
              params: { path: { namespace: allocation.namespace, name: allocation.name } },
            }),
          )
      : skipToken,
    gcTime: 0,
  });
}

export function useRelease() {
  return useMutation({
    mutationFn: ({ namespace, name, resourceVersion }: { namespace: string; name: string; resourceVersion: string }) =>
      dataOf(
        api.DELETE("/api/v1/allocations/{namespace}/{name}", {
          params: { path: { namespace, name } },
          headers: ifMatch(resourceVersion),
        }),
      ),
  });
}
