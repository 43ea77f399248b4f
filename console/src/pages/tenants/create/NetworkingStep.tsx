// Load-balancer addresses to start with.
import { NumberInput, Stack, Text } from "@mantine/core";
import type { TenantDraft } from "./useTenantDraft";

export function NetworkingStep({ draft: { form, change, errorOf } }: { draft: TenantDraft }) {
  return (
    <Stack gap="md">
      <NumberInput
        label="Load-balancer addresses to start with"
        description="For Services of type LoadBalancer; Traefik takes the first. Left out, the provider says how many."
        placeholder="as the provider says"
        min={1}
        max={65536}
        allowDecimal={false}
        maw="22rem"
        value={form.lbPoolSize}
        onChange={(value) => change({ lbPoolSize: String(value) })}
        error={errorOf("lbPoolSize")}
      />
      <Text fz="sm" c="dimmed">
        On an elastic provider more come by themselves when Services wait, and go back when they are not in use. Node
        addresses are as many as workers, or as the pool gives each tenant if that is more. Pod and Service networks,
        hand-picked addresses and addons can be written into the manifest.
      </Text>
    </Stack>
  );
}
