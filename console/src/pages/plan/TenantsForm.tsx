// How many more tenants, how large, and where.
import { MultiSelect, Select } from "@mantine/core";
import { usePools } from "../../api/pools";
import { useProviders } from "../../api/providers";
import { Amount } from "./Amount";
import { AskPanel } from "./AskPanel";
import { MOST_ADDRESSES, MOST_NODES, MOST_TENANTS, type TenantsQuestion } from "./question";

interface TenantsFormProps {
  asked: TenantsQuestion | null;
  onChange: (asked: TenantsQuestion | null) => void;
  /** What is asked when it is turned on. */
  start: TenantsQuestion | null;
}

export function TenantsForm({ asked, onChange, start }: TenantsFormProps) {
  const providers = useProviders({ limit: 200 });
  const pools = usePools({ limit: 1000 });
  return (
    <AskPanel
      title="More tenants"
      hint="They come one after the other; those that wait now are served first."
      on={asked !== null}
      onTurn={(on) => onChange(on ? start : null)}
    >
      {asked && (
        <>
          <Amount
            label="Tenants"
            value={asked.count}
            onChange={(count) => count !== null && onChange({ ...asked, count })}
            slides={100}
            most={MOST_TENANTS}
          />
          <Amount
            label="Workers of each"
            hint="Never fewer addresses than the pool gives each tenant."
            value={asked.nodes}
            otherwise="1"
            onChange={(nodes) => onChange({ ...asked, nodes })}
            slides={50}
            most={MOST_NODES}
          />
          <Amount
            label="Load-balancer addresses of each"
            value={asked.lb}
            otherwise="as given"
            onChange={(lb) => onChange({ ...asked, lb })}
            slides={64}
            most={MOST_ADDRESSES}
          />
          <Select
            label="Provider"
            placeholder={asked.pools.length > 0 ? "none: by the pools alone" : "where clusters go that name none"}
            data={withChosen(providers.data?.items.map(({ name }) => name) ?? [], [asked.provider])}
            value={asked.provider || null}
            onChange={(provider) => onChange({ ...asked, provider: provider ?? "" })}
            clearable
            clearButtonProps={{ "aria-label": "Clear the provider" }}
          />
          <MultiSelect
            size="xs"
            label="Only these pools, in this order"
            placeholder={asked.pools.length > 0 ? undefined : "those of the provider"}
            data={withChosen(pools.data?.items.map(({ name }) => name) ?? [], asked.pools)}
            value={asked.pools}
            onChange={(names) => onChange({ ...asked, pools: names })}
            searchable
            clearable
            clearButtonProps={{ "aria-label": "Clear the pools" }}
          />
        </>
      )}
    </AskPanel>
  );
}

/** What is chosen is always among what is offered, also before the list has come. */
function withChosen(offered: string[], chosen: string[]): string[] {
  return [...new Set([...offered, ...chosen.filter((name) => name !== "")])];
}
