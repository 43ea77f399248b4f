// Which address shows which page. Each page is a file of its own for the browser too, loaded when it is first opened.
import { createBrowserRouter, type RouteObject } from "react-router";
import { LoginPage } from "./shell/LoginPage";
import { NotFound, RouteError } from "./shell/RouteError";
import { SignedIn } from "./shell/SignedIn";

const pages: RouteObject[] = [
  { index: true, lazy: { Component: async () => (await import("./pages/overview/OverviewPage")).OverviewPage } },
  { path: "pools", lazy: { Component: async () => (await import("./pages/pools/PoolsPage")).PoolsPage } },
  {
    path: "pools/:namespace/:name",
    lazy: { Component: async () => (await import("./pages/pools/PoolPage")).PoolPage },
  },
  { path: "tenants", lazy: { Component: async () => (await import("./pages/tenants/TenantsPage")).TenantsPage } },
  {
    path: "tenants/new",
    lazy: { Component: async () => (await import("./pages/tenants/create/NewTenantPage")).NewTenantPage },
  },
  {
    path: "tenants/:namespace/:name",
    lazy: { Component: async () => (await import("./pages/tenants/TenantPage")).TenantPage },
  },
  { path: "plan", lazy: { Component: async () => (await import("./pages/plan/PlanPage")).PlanPage } },
  {
    path: "providers",
    lazy: { Component: async () => (await import("./pages/providers/ProvidersPage")).ProvidersPage },
  },
  {
    path: "providers/:namespace/:name",
    lazy: { Component: async () => (await import("./pages/providers/ProviderPage")).ProviderPage },
  },
  {
    path: "addresses/*",
    lazy: { Component: async () => (await import("./pages/addresses/AddressesPage")).AddressesPage },
  },
  {
    path: "allocations",
    lazy: { Component: async () => (await import("./pages/allocations/AllocationsPage")).AllocationsPage },
  },
  {
    path: "allocations/:namespace/:name",
    lazy: { Component: async () => (await import("./pages/allocations/AllocationPage")).AllocationPage },
  },
  { path: "activity", lazy: { Component: async () => (await import("./pages/activity/ActivityPage")).ActivityPage } },
  { path: "sessions", lazy: { Component: async () => (await import("./pages/sessions/SessionsPage")).SessionsPage } },
  { path: "*", Component: NotFound },
];

export const router = createBrowserRouter([
  { path: "/login", Component: LoginPage, ErrorBoundary: RouteError, HydrateFallback: () => null },
  {
    path: "/",
    Component: SignedIn,
    ErrorBoundary: RouteError,
    HydrateFallback: () => null,
    // A layer of its own: a page that breaks is replaced, the sidebar around it stays.
    children: [{ ErrorBoundary: RouteError, children: pages }],
  },
]);
