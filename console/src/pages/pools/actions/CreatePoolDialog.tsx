// A new pool: checked and drawn while it is being typed, and written only then.
import { NumberInput, SimpleGrid, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useNavigate } from "react-router";
import { parseNetwork } from "../../../address-space/addresses";
import { useCreatePool, useNewPoolPreview } from "../../../api/pools";
import { useSignedIn } from "../../../api/session";
import type { PoolCreate } from "../../../api/types";
import { paths } from "../../../paths";
import { FormDialog } from "./FormDialog";
import { PoolPreviewView } from "./PoolPreviewView";
import { ReservedRows } from "./ReserveDialog";
import { PREVIEW_PAUSE_MS, told } from "./told";
import { WindowRows } from "./WindowRows";

interface Form {
  name: string;
  cidr: string;
  reserved: { cidr: string; description: string }[];
  windows: { start: string; end: string }[];
  nodes: number | string;
  loadBalancers: number | string;
}

const EMPTY: Form = { name: "", cidr: "", reserved: [], windows: [], nodes: 5, loadBalancers: 8 };

export function CreatePoolDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return opened ? <Dialog onClose={onClose} /> : null;
}

function Dialog({ onClose }: { onClose: () => void }) {
  const { home } = useSignedIn();
  const navigate = useNavigate();
  const [form, setForm] = useState(EMPTY);
  const change = (values: Partial<Form>) => setForm({ ...form, ...values });
  const body = bodyOf(form);
  const [asked] = useDebouncedValue(body, PREVIEW_PAUSE_MS);
  const preview = useNewPoolPreview(asked);
  const create = useCreatePool();
  const current = JSON.stringify(asked) === JSON.stringify(body) && !preview.isPlaceholderData;
  return (
    <FormDialog
      title="Create a pool"
      confirm="Create the pool"
      blocked={body === null || !current || preview.data?.allowed !== true}
      busy={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={() => {
        if (!body) return;
        create.mutate(body, {
          onSuccess: (written) => {
            told(`${body.name} was created`, () => undefined)(written);
            void navigate(paths.pool(home, body.name));
          },
        });
      }}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextInput
          label="Name"
          placeholder="vlan40-pool"
          value={form.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          spellCheck={false}
          data-autofocus
        />
        <TextInput
          label="Network"
          placeholder="10.40.0.0/21"
          value={form.cidr}
          onChange={(event) => change({ cidr: event.currentTarget.value })}
          error={
            form.cidr && !parseNetwork(form.cidr.trim()) ? "Its first address and a prefix, such as 10.40.0.0/21" : null
          }
          spellCheck={false}
        />
        <NumberInput label="Nodes per tenant" min={1} value={form.nodes} onChange={(nodes) => change({ nodes })} />
        <NumberInput
          label="Load balancers per tenant"
          min={1}
          value={form.loadBalancers}
          onChange={(loadBalancers) => change({ loadBalancers })}
        />
      </SimpleGrid>
      <WindowRows windows={form.windows} onChange={(windows) => change({ windows })} />
      <ReservedRows blocks={form.reserved} onChange={(reserved) => change({ reserved })} />
      <PoolPreviewView
        query={preview}
        hint="Name the pool and its network, and what it would hand out is shown here."
      />
    </FormDialog>
  );
}

function bodyOf({ name, cidr, reserved, windows, nodes, loadBalancers }: Form): PoolCreate | null {
  if (!name.trim() || !parseNetwork(cidr.trim())) return null;
  return {
    name: name.trim(),
    cidr: cidr.trim(),
    reserved: reserved
      .filter((block) => block.cidr.trim() !== "")
      .map((block) => ({ cidr: block.cidr.trim(), description: block.description })),
    windows: windows
      .filter(({ start, end }) => start.trim() !== "" || end.trim() !== "")
      .map(({ start, end }) => ({ start: start.trim(), end: end.trim() })),
    defaults: {
      nodesPerTenant: typeof nodes === "number" ? nodes : 5,
      lbPoolPerTenant: typeof loadBalancers === "number" ? loadBalancers : 8,
    },
  };
}
