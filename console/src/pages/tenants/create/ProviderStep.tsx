// Where the tenant goes, with how much room there is.
import { Radio, Stack, Text } from "@mantine/core";
import { useProviders } from "../../../api/providers";
import { useSignedIn } from "../../../api/session";
import type { ProviderItem } from "../../../api/types";
import { Loaded } from "../../../components/Loaded";
import { StatusBadge } from "../../../components/StatusBadge";
import { plural } from "../../../words";
import classes from "./create.module.css";
import type { TenantDraft } from "./useTenantDraft";

const DEFAULT = "";

export function ProviderStep({ draft: { form, change, errorOf } }: { draft: TenantDraft }) {
  const { home } = useSignedIn();
  const providers = useProviders({ limit: 200 });
  const chosen = form.provider ? `${form.providerNamespace || home}/${form.provider}` : DEFAULT;
  const choose = (value: string) => {
    const [namespace = "", name = ""] = value.split("/");
    // The namespace is left out where it goes without saying.
    change({ provider: name, providerNamespace: value === DEFAULT || namespace === home ? "" : namespace });
  };
  return (
    <Radio.Group
      label="Provider"
      description="Where machines and addresses come from. It is fixed once the tenant is created."
      value={chosen}
      onChange={choose}
      error={errorOf("provider") ?? errorOf("providerNamespace")}
    >
      <Stack gap="xs" mt="xs">
        <Radio.Card value={DEFAULT} className={classes.card}>
          <Text fz="sm" fw={600}>
            The platform's default
          </Text>
          <Text fz="xs" c="dimmed">
            Where clusters go that name none.
          </Text>
        </Radio.Card>
        <Loaded query={providers}>
          {({ items }) =>
            items.map((provider) => <ProviderCard key={`${provider.namespace}/${provider.name}`} provider={provider} />)
          }
        </Loaded>
      </Stack>
    </Radio.Group>
  );
}

function roomInWords(tenants: number): string {
  return tenants === 0
    ? "No room for more tenants now"
    : `Room for about ${plural(tenants, "more tenant", "more tenants")}`;
}

function ProviderCard({ provider }: { provider: ProviderItem }) {
  const { namespace, name, ready, problem, mode, pools, estimatedTenants } = provider;
  return (
    <Radio.Card value={`${namespace}/${name}`} className={classes.card}>
      <Text fz="sm" fw={600}>
        {name}{" "}
        <Text span fz="xs" c="dimmed">
          {provider.provider}
        </Text>
      </Text>
      {ready ? (
        <Text fz="xs" c="dimmed">
          {mode === "cloud"
            ? "The cloud gives addresses."
            : estimatedTenants === null
              ? `Addresses from ${pools.join(", ")}.`
              : `${roomInWords(estimatedTenants)}; addresses from ${pools.join(", ")}.`}
        </Text>
      ) : (
        <StatusBadge health="warning" plain>
          {problem || "not ready"}
        </StatusBadge>
      )}
    </Radio.Card>
  );
}
