import { useComputedColorScheme } from "@mantine/core";
import { DARK, LIGHT, type Palette } from "./palette";

export function usePalette(): Palette {
  return useComputedColorScheme("light") === "dark" ? DARK : LIGHT;
}
