import { expect, test } from "vitest";
import { waitBefore } from "./backoff";

test("the first try comes within a quarter of a second, the hundredth within fifteen seconds", () => {
  for (const chance of [0, 0.3, 0.999]) {
    expect(waitBefore(0, chance)).toBeLessThanOrEqual(250);
    expect(waitBefore(100, chance)).toBeLessThanOrEqual(15_000);
    expect(waitBefore(100, chance)).toBeGreaterThanOrEqual(7_500);
  }
});

test("waits never get shorter with more failures", () => {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    expect(waitBefore(attempt + 1, 0.5)).toBeGreaterThanOrEqual(waitBefore(attempt, 0.5));
  }
});
