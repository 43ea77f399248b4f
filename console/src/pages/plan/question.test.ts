import { describe, expect, test } from "vitest";
import { commandLineOf, FIRST_QUESTION, readQuestion, requestOf, writeQuestion, type Question } from "./question";

const NOTHING: Question = { tenants: null, requests: null, edit: null };
const TENANTS = { count: 12, nodes: 5, lb: 8, provider: "lab", pools: [] };
const EDIT = { pool: "rack-12", cidr: "", windows: ["10.60.0.32-10.60.3.254"], reserve: ["10.60.2.0/24"] };

test("a question survives the page's address", () => {
  const question: Question = {
    tenants: { ...TENANTS, pools: ["a", "b"] },
    requests: { pool: "rack-12", type: "nodes", counts: [16, 4] },
    edit: EDIT,
  };
  expect(readQuestion(writeQuestion(question))).toEqual(question);
});

test("an address that asks nothing asks the first question; numbers out of bounds count for nothing", () => {
  expect(readQuestion(new URLSearchParams())).toEqual(FIRST_QUESTION);
  expect(readQuestion(new URLSearchParams("tenants=9999999"))).toEqual(FIRST_QUESTION);
  expect(readQuestion(new URLSearchParams("tenants=3&lb=0")).tenants).toMatchObject({ count: 3, lb: null });
});

describe("the request", () => {
  test("leaves out what is not asked", () => {
    expect(requestOf({ ...NOTHING, edit: { ...EDIT, windows: [], reserve: [] } })).toBeNull();
    expect(requestOf({ ...NOTHING, requests: { pool: "a", type: "nodes", counts: [] } })).toBeNull();
  });

  test("has windows as two ends", () => {
    expect(requestOf({ ...NOTHING, edit: EDIT })?.edit?.windows).toEqual([["10.60.0.32", "10.60.3.254"]]);
  });
});

describe("the command line", () => {
  test("of tenants", () => {
    expect(commandLineOf({ ...NOTHING, tenants: TENANTS }).command).toBe(
      "butleradm ipam plan --tenants 12 --nodes 5 --lb 8 --provider lab",
    );
    expect(
      commandLineOf({ ...NOTHING, tenants: { ...TENANTS, nodes: null, lb: null, provider: "", pools: ["a", "b"] } })
        .command,
    ).toBe("butleradm ipam plan --tenants 12 --pool a --pool b");
  });

  test("of requests, and of tenants after an edit", () => {
    expect(commandLineOf({ ...NOTHING, requests: { pool: "a", type: "nodes", counts: [16, 4] } }).command).toBe(
      "butleradm ipam plan --pool a --count 16 --count 4 --type nodes",
    );
    expect(commandLineOf({ ...NOTHING, tenants: TENANTS, edit: EDIT }).command).toBe(
      "butleradm ipam plan --tenants 12 --nodes 5 --lb 8 --provider lab --pool rack-12 --window 10.60.0.32-10.60.3.254 --reserve 10.60.2.0/24",
    );
  });

  test("is not given where it would ask something else", () => {
    const requests = { pool: "other", type: "nodes" as const, counts: [1] };
    expect(commandLineOf({ ...NOTHING, requests, edit: EDIT }).command).toBeNull();
    expect(commandLineOf({ ...NOTHING, tenants: { ...TENANTS, provider: "" }, edit: EDIT }).command).toBeNull();
    expect(commandLineOf(NOTHING).command).toBeNull();
  });

  test("never lets a value become a command of the shell", () => {
    const edit = { ...EDIT, cidr: "$(reboot)", windows: [], reserve: [] };
    expect(commandLineOf({ ...NOTHING, edit }).command).toBe("butleradm ipam plan --pool rack-12 --cidr '$(reboot)'");
  });
});
