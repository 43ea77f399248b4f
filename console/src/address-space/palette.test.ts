import { describe, expect, test } from "vitest";
import { DARK, heatColour, LIGHT, tenantColour } from "./palette";

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

describe.each([
  ["light", LIGHT],
  ["dark", DARK],
])("in the %s theme", (_name, palette) => {
  test.each([...palette.tenants, ...palette.heat, palette.reserved, palette.planned, palette.wrong])(
    "%s stands out from free addresses and from gaps",
    (colour) => {
      expect(contrast(colour, palette.free)).toBeGreaterThanOrEqual(3);
      expect(contrast(colour, palette.gap)).toBeGreaterThanOrEqual(3);
    },
  );

  test.each([...palette.tenants, palette.planned])("names can be read on %s", (colour) => {
    expect(contrast(colour, palette.onTenant)).toBeGreaterThanOrEqual(4.5);
  });

  test("words can be read", () => {
    expect(contrast(palette.text, palette.gap)).toBeGreaterThanOrEqual(7);
    expect(contrast(palette.textFaint, palette.gap)).toBeGreaterThanOrEqual(4.5);
  });
});

test("a tenant keeps its colour", () => {
  expect(tenantColour(LIGHT, "team/a")).toBe(tenantColour(LIGHT, "team/a"));
});

test("heat goes from few to all", () => {
  expect(heatColour(LIGHT, 0.01)).toBe(LIGHT.heat[0]);
  expect(heatColour(LIGHT, 1)).toBe(LIGHT.heat.at(-1));
});
