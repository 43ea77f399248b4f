import { expect, test } from "vitest";
import { ago, daysInWords, percent, plural } from "./words";

test("a pool is full only when it is full, and empty only when it is empty", () => {
  expect(percent(99.97)).toBe("99%");
  expect(percent(68.75)).toBe("68%");
  expect(percent(100)).toBe("100%");
  expect(percent(0.02)).toBe("<1%");
  expect(percent(0)).toBe("0%");
  expect(percent(null)).toBe("not known");
});

test("numbers and their nouns agree", () => {
  expect(plural(1, "address", "addresses")).toBe("1 address");
  expect(plural(16777216, "address", "addresses")).toBe("16,777,216 addresses");
});

test("times are told from now", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ago("2026-01-01T23:59:58Z", now)).toBe("now");
  expect(ago("2026-01-01T23:00:00Z", now)).toBe("1h ago");
  expect(ago("2026-01-05T00:00:00Z", now)).toBe("in 3d");
});

test("lengths of time are told roughly", () => {
  expect(daysInWords(0.01)).toBe("less than an hour");
  expect(daysInWords(1.5)).toBe("36 hours");
  expect(daysInWords(90)).toBe("3 months");
});
