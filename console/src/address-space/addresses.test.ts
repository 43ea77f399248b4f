import { describe, expect, test } from "vitest";
import { ADDRESSES, formatAddress, formatRange, isLarger, parseAddress, parseNetwork, prefixOf } from "./addresses";
import { seededChance } from "./testing";

describe("addresses over the whole space", () => {
  test("read as written and written as read", () => {
    const chance = seededChance(1);
    const edges = [0, 1, 255, 256, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, ADDRESSES - 2, ADDRESSES - 1];
    const many = Array.from({ length: 5000 }, () => Math.floor(chance() * ADDRESSES));
    for (const value of [...edges, ...many]) {
      const text = formatAddress(value);
      expect(parseAddress(text)).toBe(value);
      expect(text.split(".").every((octet) => Number(octet) >= 0 && Number(octet) <= 255)).toBe(true);
    }
  });

  test("are ordered as their texts' octets are, also above 128.0.0.0", () => {
    expect(parseAddress("127.255.255.255")).toBeLessThan(parseAddress("128.0.0.0") ?? 0);
    expect(parseAddress("192.168.10.128")).toBe(3232238208);
    expect(parseAddress("255.255.255.255")).toBe(ADDRESSES - 1);
  });

  test.each([
    "",
    "10",
    "10.0.0",
    "10.0.0.256",
    "10.0.0.0.0",
    "010.0.0.1",
    "10.0.0.-1",
    "10.0.0.1 ",
    "::1",
    "1e1.0.0.0",
  ])("%j is no address", (text) => expect(parseAddress(text)).toBeNull());
});

describe("networks", () => {
  test("have the size of their prefix, from /0 to /32", () => {
    for (let prefix = 0; prefix <= 32; prefix += 1) {
      const network = parseNetwork(`0.0.0.0/${prefix}`);
      expect(network).toEqual({ first: 0, size: 2 ** (32 - prefix) });
      expect(prefixOf(2 ** (32 - prefix))).toBe(prefix);
    }
  });

  test.each(["10.0.0.1/24", "10.0.0.0/33", "10.0.0.0", "10.0.0.0/", "10.0.0.0/24/1", "10.0.0.0/-1"])(
    "%j is none",
    (text) => expect(parseNetwork(text)).toBeNull(),
  );

  test("are larger only when they hold the other and more", () => {
    expect(isLarger("10.92.88.0/22", "10.92.90.0/23")).toBe(true);
    expect(isLarger("192.168.0.0/16", "192.168.255.0/24")).toBe(true);
    expect(isLarger("10.92.90.0/23", "10.92.90.0/23")).toBe(false);
    expect(isLarger("10.92.90.0/24", "10.92.90.0/23")).toBe(false);
    expect(isLarger("10.92.0.0/22", "10.92.90.0/23")).toBe(false);
    expect(isLarger("10.92.90.1/22", "10.92.90.0/23")).toBe(false);
  });

  test("sizes in between have no prefix", () => expect(prefixOf(48)).toBeNull());
});

test("a range of one address is that address", () => {
  expect(formatRange(3232235776, 1)).toBe("192.168.1.0");
  expect(formatRange(3232235776, 16)).toBe("192.168.1.0–192.168.1.15");
});
