// Where an allocation stands, in the words of the command line: held, idle, going back, asked for, refused, released.
import { StatusBadge, type Health } from "./StatusBadge";

const HEALTH: Record<string, Health> = {
  held: "ok",
  idle: "info",
  "going back": "working",
  "asked for": "working",
  refused: "critical",
  released: "unknown",
};

export function AllocationState({ state, plain }: { state: string; plain?: boolean }) {
  return (
    <StatusBadge health={HEALTH[state] ?? "info"} plain={plain}>
      {state}
    </StatusBadge>
  );
}
