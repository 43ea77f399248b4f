// The address map on an invented pool, to look at and to measure; `npm run dev` serves it as /dev/map.html.
// /dev/map.html?prefix=8&allocations=50000 draws that pool; the button pans and zooms for a few seconds and tells how
// many frames a second were drawn. No part of what is built.
import { Button, Group, MantineProvider, Text } from "@mantine/core";
import { StrictMode, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import "@mantine/core/styles.css";
import "../src/styles.css";
import { AddressMap } from "../src/address-space/map/AddressMap";
import { SegmentIndex, type Segment } from "../src/address-space/segmentIndex";
import { inventedPool } from "../src/address-space/testing";
import { cssVariables, theme } from "../src/theme";

const asked = new URLSearchParams(window.location.search);
const prefix = Number(asked.get("prefix") ?? 8);
const allocations = Number(asked.get("allocations") ?? 50_000);
const SECONDS = 4;

function Measured() {
  const index = useMemo(() => new SegmentIndex(inventedPool({ prefix, allocations })), []);
  const [selected, setSelected] = useState<Segment | null>(null);
  const [result, setResult] = useState("");
  return (
    <div style={{ maxWidth: "75rem", margin: "1rem auto", padding: "0 1rem" }}>
      <Group mb="sm">
        <Button onClick={() => void measure().then(setResult)}>Measure</Button>
        <Text id="result">{result}</Text>
      </Group>
      <AddressMap index={index} selected={selected} onSelect={setSelected} />
    </div>
  );
}

/** Pans with the wheel in every frame and zooms in or out in each tenth. */
async function measure(): Promise<string> {
  const canvas = document.querySelector("canvas");
  if (!canvas) return "no map";
  const box = canvas.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
  const times: number[] = [];
  const begun = performance.now();
  for (let frame = 0; performance.now() - begun < SECONDS * 1000; frame += 1) {
    const zooming = frame % 10 === 0;
    const closer = Math.floor(frame / 140) % 2 === 0;
    canvas.dispatchEvent(
      new WheelEvent("wheel", zooming ? { ...at, ctrlKey: true, deltaY: closer ? -1 : 1 } : { ...at, deltaY: 37 }),
    );
    times.push(await new Promise<number>((resolve) => requestAnimationFrame(resolve)));
  }
  const gaps = times
    .slice(1)
    .map((time, index) => time - (times[index] ?? time))
    .sort((a, b) => a - b);
  const rate = (1000 * gaps.length) / gaps.reduce((sum, gap) => sum + gap, 0);
  const slow = gaps[Math.floor(gaps.length * 0.99)] ?? 0;
  return `${rate.toFixed(1)} frames/s over ${gaps.length} frames; 99% of the gaps below ${slow.toFixed(1)} ms`;
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto">
        <Measured />
      </MantineProvider>
    </StrictMode>,
  );
}
