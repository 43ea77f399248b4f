// How a provider hands out addresses, in words.
import type { ProviderItem } from "../../api/types";

export function modeInWords({ mode, allocationMode }: Pick<ProviderItem, "mode" | "allocationMode">): string {
  if (mode === "cloud") return "by the cloud";
  return allocationMode ? `from pools, ${allocationMode}` : "from pools";
}
