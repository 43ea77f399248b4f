import { useQuery } from "@tanstack/react-query";
import { segmentsQuery } from "../api/pools";
import type { Segments } from "../api/types";
import { SegmentIndex } from "./segmentIndex";

/** A pool's segments, made ready for quick questions once for all that draw them. */
export function useSegmentIndex(namespace: string, name: string) {
  return useQuery({ ...segmentsQuery(namespace, name), select: indexed });
}

function indexed(segments: Segments): SegmentIndex {
  return new SegmentIndex(segments);
}
