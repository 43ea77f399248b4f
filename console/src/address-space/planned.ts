// A pool as a plan would leave it: what is planned, over the free addresses that it would take.
import type { PlannedBlock, Segments } from "../api/types";
import { parseAddress } from "./addresses";
import type { DrawnSegments } from "./segmentIndex";

/** `blocks` are those of this pool; one without a range takes nothing. */
export function withPlanned(segments: Segments, blocks: PlannedBlock[]): DrawnSegments {
  const start = parseAddress(segments.start ?? "") ?? 0;
  const coming = blocks
    .flatMap(({ name, tenant, type, pool, range }) => {
      const first = range && parseAddress(range.start);
      if (!range || first === null) return [];
      return [{ first: first - start, size: range.count, holder: { allocation: name, tenant, type, pool, role: "" } }];
    })
    .sort((left, right) => left.first - right.first);
  if (coming.length === 0) return segments;
  const { columns } = segments;
  const planned = segments.kinds.length;
  const holders = [...segments.holders];
  const made: Segments["columns"] = { first: [], size: [], kind: [], holder: [], note: [], heldBy: [], stranded: [] };
  const push = (index: number, first: number, end: number, kind: number, holder: number) => {
    if (end <= first) return;
    made.first.push(first);
    made.size.push(end - first);
    made.kind.push(kind);
    made.holder.push(holder);
    made.note.push(columns.note[index] ?? -1);
    made.heldBy.push(columns.heldBy[index] ?? 0);
    made.stranded.push(columns.stranded[index] ?? false);
  };
  let next = 0;
  columns.first.forEach((first, index) => {
    const end = first + (columns.size[index] ?? 0);
    const kind = columns.kind[index] ?? 0;
    let at = first;
    // Both are in order. A planned range lies in one free segment; were it anywhere else, what is there would show.
    for (let block = coming[next]; block && block.first < end; block = coming[next]) {
      next += 1;
      if (segments.kinds[kind] !== "free" || block.first < at || block.first + block.size > end) continue;
      push(index, at, block.first, kind, -1);
      push(index, block.first, block.first + block.size, planned, holders.push(block.holder) - 1);
      at = block.first + block.size;
    }
    push(index, at, end, kind, columns.holder[index] ?? -1);
  });
  return { ...segments, kinds: [...segments.kinds, "planned"], columns: made, holders };
}
