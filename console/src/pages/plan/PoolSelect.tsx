import { Select } from "@mantine/core";
import { usePools } from "../../api/pools";

export function PoolSelect({ value, onChange }: { value: string; onChange: (pool: string) => void }) {
  const pools = usePools({ limit: 1000 });
  const offered = pools.data?.items.map(({ name, cidr }) => ({ value: name, label: `${name} (${cidr})` })) ?? [];
  const known = value === "" || offered.some((pool) => pool.value === value);
  return (
    <Select
      label="Pool"
      placeholder="Choose a pool"
      data={known ? offered : [...offered, { value, label: value }]}
      value={value || null}
      onChange={(pool) => onChange(pool ?? "")}
      searchable
      allowDeselect={false}
    />
  );
}
