import { expect, test } from "vitest";
import { browserInWords } from "./browser";

test("browsers are told by their own names, though each claims to be all of them", () => {
  const chrome =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
  expect(browserInWords(chrome)).toBe("Chrome 156 on Linux");
  expect(browserInWords(`${chrome} Edg/156.0.0.0`)).toBe("Edge 156 on Linux");
  expect(
    browserInWords(
      "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1",
    ),
  ).toBe("Safari 19 on iOS");
});

test("what is no browser is shown as it is", () => {
  expect(browserInWords("curl/8.9")).toBe("curl/8.9");
  expect(browserInWords("")).toBe("not known");
});
