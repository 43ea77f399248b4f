// How a pool is, in a word or two.
import type { PoolItem } from "../../api/types";
import { StatusBadge, type Health } from "../../components/StatusBadge";
import { tierInWords } from "../../words";

export function PoolState({ pool, plain }: { pool: PoolItem; plain?: boolean }) {
  const [health, words] = stateOf(pool);
  return (
    <StatusBadge health={health} plain={plain}>
      {words}
    </StatusBadge>
  );
}

function stateOf(pool: PoolItem): [Health, string] {
  if (pool.problem) return ["critical", "hands out nothing"];
  if (pool.tier) return [pool.tier === "CapacityWarning" ? "warning" : "critical", tierInWords(pool.tier)];
  if (!pool.ready) return ["working", "coming up"];
  return ["ok", "has room"];
}
