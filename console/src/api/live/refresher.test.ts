import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PAUSE_MS, Refresher } from "./refresher";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("changes that come together are asked for once, also when several of them mean the same", async () => {
  const ask = vi.fn(() => Promise.resolve());
  const refresher = new Refresher((pattern) => [{ id: pattern[0] ?? "", ask }]);
  for (let index = 0; index < 200; index += 1) refresher.add([["overview"], ["pools", "list"], ["pools", "one"]]);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(ask).toHaveBeenCalledTimes(2);
});

test("a change while the answer is on its way is asked for after it, never instead of it", async () => {
  const ask = vi.fn(() => new Promise((resolve) => setTimeout(resolve, 1000)));
  const refresher = new Refresher(() => [{ id: "overview", ask }]);
  refresher.add([["overview"]]);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  for (let index = 0; index < 8; index += 1) {
    refresher.add([["overview"]]);
    await vi.advanceTimersByTimeAsync(PAUSE_MS);
  }
  expect(ask).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(ask).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(5000);
  expect(ask).toHaveBeenCalledTimes(2);
});

test("a slow answer holds up no other question", async () => {
  const asked: string[] = [];
  const refresher = new Refresher(() =>
    ["slow", "quick"].map((id) => ({
      id,
      ask: () => {
        asked.push(id);
        return id === "slow" ? new Promise(() => undefined) : Promise.resolve();
      },
    })),
  );
  refresher.add([["pools"]]);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  refresher.add([["pools"]]);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(asked).toEqual(["slow", "quick", "quick"]);
});

test("a question that failed is asked again with the next change", async () => {
  const ask = vi.fn(() => Promise.reject(new Error("away")));
  const refresher = new Refresher(() => [{ id: "overview", ask }]);
  refresher.add([["overview"]]);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  refresher.add([["overview"]]);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(ask).toHaveBeenCalledTimes(2);
});
