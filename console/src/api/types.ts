// Short names for the types of the API, which are generated into schema.d.ts (`npm run generate`).
import type { components } from "./schema";

type Schemas = components["schemas"];

export type ActivityItem = Schemas["ActivityItem"];
export type AddressAnswer = Schemas["AddressAnswer"];
export type AddressRange = Schemas["AddressRange"];
export type Advice = Schemas["Advice"];
export type AllocationCreate = Schemas["AllocationCreate"];
export type AllocationItem = Schemas["AllocationItem"];
export type AllocationPreview = Schemas["AllocationPreview"];
export type Attention = Schemas["Attention"];
export type Block = Schemas["Block"];
export type Changed = Schemas["Changed"];
export type Condition = Schemas["Condition"];
export type FieldError = Schemas["FieldError"];
export type Fill = Schemas["Fill"];
export type Forecast = Schemas["Forecast"];
export type Frame = Schemas["Frame"];
export type History = Schemas["History"];
export type HoleBucket = Schemas["HoleBucket"];
export type Hit = Schemas["Hit"];
export type Link = Schemas["Link"];
export type LoginMethods = Schemas["LoginMethods"];
export type Me = Schemas["Me"];
export type Overview = Schemas["Overview"];
export type Owner = Schemas["Owner"];
export type Place = Schemas["Place"];
export type Plan = Schemas["Plan"];
export type PlanRequest = Schemas["PlanRequest"];
export type PlannedBlock = Schemas["PlannedBlock"];
export type PlannedPool = Schemas["PlannedPool"];
export type PoolCreate = Schemas["PoolCreate"];
export type PoolDetail = Schemas["PoolDetail"];
export type PoolEdit = Schemas["PoolEdit"];
export type PoolItem = Schemas["PoolItem"];
export type PoolPreview = Schemas["PoolPreview"];
export type Problem = Schemas["Problem"];
export type ProviderDetail = Schemas["ProviderDetail"];
export type ProviderItem = Schemas["ProviderItem"];
export type ReleaseImpact = Schemas["ReleaseImpact"];
export type SearchAnswer = Schemas["SearchAnswer"];
export type SegmentRow = Schemas["SegmentRow"];
export type Segments = Schemas["Segments"];
export type SegmentKind = Segments["kinds"][number];
export type Session = Schemas["Session"];
export type Span = Schemas["Span"];
export type TenantAddresses = Schemas["TenantAddresses"];
export type TenantDetail = Schemas["TenantDetail"];
export type TenantItem = Schemas["TenantItem"];
export type TenantPreview = Schemas["TenantPreview"];
export type Tier = NonNullable<PoolItem["tier"]>;
export type TierMark = Schemas["TierMark"];
export type Written = Schemas["Written"];

/** A page of a list; `next` is what to send as `cursor` for the page after it. */
export interface Page<Item> {
  items: Item[];
  total: number;
  next: string | null;
}
