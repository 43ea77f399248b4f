import { expect, test } from "vitest";
import type { Plan } from "../../api/types";
import { verdictOf } from "./inWords";

const PLAN: Plan = {
  fits: true,
  provider: null,
  edit: null,
  waiting: [],
  tenants: [],
  tenantsThatFit: 0,
  firstFailure: null,
  requests: [],
  orderByChance: false,
  pools: [],
};

const tenant = (name: string, fits: boolean) => ({ name, fits, blocks: [], message: "" });

test("tenants that all fit, and the first that does not", () => {
  expect(verdictOf({ ...PLAN, tenants: [tenant("a", true)], tenantsThatFit: 1 }).title).toBe("The tenant fits");
  const short = verdictOf({
    ...PLAN,
    fits: false,
    tenants: [tenant("a", true), tenant("b", false)],
    tenantsThatFit: 1,
    firstFailure: { tenant: 2, message: "the pool is full" },
  });
  expect(short.title).toBe("1 of 2 tenants fit");
  expect(short.lines).toContain("Tenant 2 is the first that does not: the pool is full");
});

test("an edit that would be refused ends the plan", () => {
  const spec = { cidr: "10.0.0.0/24", windows: [], reserved: [] };
  const edit = {
    pool: "a",
    before: spec,
    after: spec,
    refused: [{ field: "spec.cidr", message: "too small" }],
    warnings: [],
    stranded: [],
  };
  expect(verdictOf({ ...PLAN, fits: false, edit })).toEqual({
    title: "The edit would be refused",
    lines: ["spec.cidr: too small"],
  });
});
