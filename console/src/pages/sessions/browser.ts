// A browser in words, from what it says of itself.

const BROWSERS: [RegExp, string][] = [
  [/Edg\/(\d+)/, "Edge"],
  [/OPR\/(\d+)/, "Opera"],
  [/Firefox\/(\d+)/, "Firefox"],
  [/Chrome\/(\d+)/, "Chrome"],
  [/Version\/(\d+).*Safari\//, "Safari"],
];

const SYSTEMS: [RegExp, string][] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
];

/** `Firefox 140 on Linux`; what it said itself where that is no known browser. */
export function browserInWords(userAgent: string): string {
  const system = SYSTEMS.find(([sign]) => sign.test(userAgent))?.[1];
  for (const [sign, name] of BROWSERS) {
    const version = sign.exec(userAgent)?.[1];
    if (version) return `${name} ${version}${system ? ` on ${system}` : ""}`;
  }
  return userAgent || "not known";
}
