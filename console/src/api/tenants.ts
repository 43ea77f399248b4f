// Tenants: lists, one tenant and its addresses, and what can be done to it.
import { keepPreviousData, skipToken, useMutation, useQuery } from "@tanstack/react-query";
import { api, asFilters, dataOf, ifMatch } from "./client";
import { keys, type ListQuery } from "./keys";

export interface TenantQuery extends ListQuery {
  phase?: string;
  namespace?: string;
  provider?: string;
}

export type Manifest = Record<string, unknown>;

export function useTenants(query: TenantQuery) {
  return useQuery({
    queryKey: keys.list("tenants", query),
    queryFn: () => dataOf(api.GET("/api/v1/tenants", { params: { query: asFilters(query) } })),
    placeholderData: keepPreviousData,
  });
}

export function useTenant(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.one("tenants", namespace, name),
    queryFn: () => dataOf(api.GET("/api/v1/tenants/{namespace}/{name}", at(namespace, name))),
  });
}

export function useTenantAddresses(namespace: string, name: string) {
  return useQuery({
    queryKey: keys.part("tenants", namespace, name, "addresses"),
    queryFn: () => dataOf(api.GET("/api/v1/tenants/{namespace}/{name}/addresses", at(namespace, name))),
  });
}

export function useDrift() {
  return useQuery({ queryKey: keys.drift, queryFn: () => dataOf(api.GET("/api/v1/drift")) });
}

/** A secret: asked for only by a click, and not kept. */
export function useKubeconfig(namespace: string, name: string) {
  return useMutation({
    mutationFn: () => dataOf(api.POST("/api/v1/tenants/{namespace}/{name}/kubeconfig", at(namespace, name))),
    gcTime: 0,
  });
}

export function useTenantPreview(manifest: Manifest | null) {
  return useQuery({
    queryKey: ["preview", "tenant", manifest],
    queryFn: manifest ? () => dataOf(api.POST("/api/v1/tenants/preview", { body: { manifest } })) : skipToken,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

export function useCreateTenant() {
  return useMutation({
    mutationFn: (manifest: Manifest) => dataOf(api.POST("/api/v1/tenants", { body: { manifest } })),
  });
}

export function useScale(namespace: string, name: string) {
  return useMutation({
    mutationFn: ({ workers, resourceVersion }: { workers: number; resourceVersion: string }) =>
      dataOf(
        api.POST("/api/v1/tenants/{namespace}/{name}/scale", {
          ...at(namespace, name),
          headers: ifMatch(resourceVersion),
          body: { workers },
        }),
      ),
  });
}

export function useUpgrade(namespace: string, name: string) {
  return useMutation({
    mutationFn: ({ version, resourceVersion }: { version: string; resourceVersion: string }) =>
      dataOf(
        api.POST("/api/v1/tenants/{namespace}/{name}/upgrade", {
          ...at(namespace, name),
          headers: ifMatch(resourceVersion),
          body: { version },
        }),
      ),
  });
}

/** Puts a manifest in the place of the one that was shown. */
export function useEditTenant(namespace: string, name: string) {
  return useMutation({
    mutationFn: ({ manifest, resourceVersion }: { manifest: Manifest; resourceVersion: string }) =>
      dataOf(
        api.PUT("/api/v1/tenants/{namespace}/{name}", {
          ...at(namespace, name),
          headers: ifMatch(resourceVersion),
          body: { manifest },
        }),
      ),
  });
}

export function useDeleteTenant(namespace: string, name: string) {
  return useMutation({
    mutationFn: (resourceVersion: string) =>
      dataOf(
        api.DELETE("/api/v1/tenants/{namespace}/{name}", {
          ...at(namespace, name),
          headers: ifMatch(resourceVersion),
        }),
      ),
  });
}

function at(namespace: string, name: string) {
  return { params: { path: { namespace, name } } };
}
