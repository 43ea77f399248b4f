// Colours of addresses, for both themes. Tenants' hues are told apart with the usual kinds of colour blindness too, and
// every one has a contrast of 3:1 or more to free addresses and to the gaps between runs (palette.test.ts).

export interface Palette {
  /** Between runs and cells. */
  gap: string;
  free: string;
  /** The frame of free cells. */
  freeEdge: string;
  outside: string;
  outsideSign: string;
  reserved: string;
  reservedSign: string;
  tenants: readonly string[];
  /** Signs and names on a tenant's colour. */
  onTenant: string;
  /** What a plan would add, and no tenant's colour. */
  planned: string;
  /** Held shares of cells with many addresses, from few to all. */
  heat: readonly string[];
  wrong: string;
  focus: string;
  text: string;
  textFaint: string;
}

export const LIGHT: Palette = {
  gap: "#ffffff",
  free: "#eef1f5",
  freeEdge: "#d5dae2",
  outside: "#ffffff",
  outsideSign: "#b6bdc9",
  reserved: "#5d6675",
  reservedSign: "#ffffff",
  tenants: ["#0067a3", "#b34700", "#00734f", "#7b3fa0", "#7d6200", "#a8285a", "#1f6f78", "#3f3d9e"],
  onTenant: "#ffffff",
  planned: "#d0006f",
  heat: ["#5e7fdc", "#4668cf", "#3352b4", "#243d92", "#172a6b"],
  wrong: "#c5221f",
  focus: "#111418",
  text: "#1c2129",
  textFaint: "#59616f",
};

export const DARK: Palette = {
  gap: "#151920",
  free: "#20262f",
  freeEdge: "#343c49",
  outside: "#151920",
  outsideSign: "#4a5261",
  reserved: "#8d96a6",
  reservedSign: "#151920",
  tenants: ["#5db3e6", "#f0935a", "#58c796", "#c79be8", "#d9b84a", "#f08db0", "#63c9d3", "#a2a4f5"],
  onTenant: "#10131a",
  planned: "#ff6fb5",
  heat: ["#5d78c9", "#7590dd", "#90a8ec", "#b0c2f5", "#d6e0fc"],
  wrong: "#ff8278",
  focus: "#ffffff",
  text: "#e4e7ec",
  textFaint: "#9fa7b5",
};

/** Always the same colour for the same tenant, on every page and in every pool. */
export function tenantColour(palette: Palette, tenant: string): string {
  let hash = 2166136261;
  for (let index = 0; index < tenant.length; index += 1) {
    hash = Math.imul(hash ^ tenant.charCodeAt(index), 16777619);
  }
  // Names that differ in their last sign alone would share most of their low bits without this.
  hash = Math.imul(hash ^ (hash >>> 15), 2246822519);
  hash ^= hash >>> 13;
  return palette.tenants[(hash >>> 0) % palette.tenants.length] ?? palette.reserved;
}

export function heatColour(palette: Palette, share: number): string {
  const step = Math.min(palette.heat.length - 1, Math.floor(share * palette.heat.length));
  return palette.heat[step] ?? palette.gap;
}
