// Asks for addresses: any so many, or exactly these (a pin). What the request would get is shown first.
import { NumberInput, SegmentedControl, Select, SimpleGrid, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { parseAddress } from "../../../address-space/addresses";
import { useAllocationPreview, useCreateAllocation } from "../../../api/allocations";
import type { AllocationCreate, PoolItem } from "../../../api/types";
import { CopyBlock } from "../../../components/CopyText";
import { LinesSkeleton } from "../../../components/Loaded";
import { ProblemAlert } from "../../../components/ProblemAlert";
import { StatusBadge } from "../../../components/StatusBadge";
import { plural, rangeInWords } from "../../../words";
import classes from "../pools.module.css";
import { FormDialog } from "./FormDialog";
import { PREVIEW_PAUSE_MS, told } from "./told";

type Form = Omit<AllocationCreate, "pool" | "count"> & { count: number | string; start: string; end: string };

export function AllocateDialog({ pool, onClose }: { pool: PoolItem; onClose: () => void }) {
  const [exactly, setExactly] = useState(false);
  const [form, setForm] = useState<Form>({
    name: "",
    tenantNamespace: "",
    tenant: "",
    type: "loadbalancer",
    count: 8,
    start: "",
    end: "",
  });
  const change = (values: Partial<Form>) => setForm({ ...form, ...values });
  const body = bodyOf(form, pool.name, exactly);
  const [asked] = useDebouncedValue(body, PREVIEW_PAUSE_MS);
  const preview = useAllocationPreview(asked);
  const create = useCreateAllocation();
  const current = JSON.stringify(asked) === JSON.stringify(body) && !preview.isPlaceholderData;
  return (
    <FormDialog
      title={`Allocate addresses of ${pool.name}`}
      confirm={preview.data?.granted === false ? "Ask, and wait" : "Allocate"}
      blocked={body === null || !current || !preview.data}
      busy={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={() => {
        if (body) create.mutate(body, { onSuccess: told(`${body.name} was created`, onClose) });
      }}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextInput
          label="Name of the allocation"
          value={form.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          placeholder="my-cluster-lb"
          spellCheck={false}
          data-autofocus
        />
        <Select
          label="For"
          value={form.type}
          allowDeselect={false}
          onChange={(type) => change({ type: type === "nodes" ? "nodes" : "loadbalancer" })}
          data={[
            { value: "loadbalancer", label: "Load balancers" },
            { value: "nodes", label: "Nodes" },
          ]}
        />
        <TextInput
          label="Tenant"
          value={form.tenant}
          onChange={(event) => change({ tenant: event.currentTarget.value })}
          placeholder="my-cluster"
          spellCheck={false}
        />
        <TextInput
          label="Namespace of the tenant"
          value={form.tenantNamespace}
          onChange={(event) => change({ tenantNamespace: event.currentTarget.value })}
          placeholder="team-backend"
          spellCheck={false}
        />
      </SimpleGrid>
      <SegmentedControl
        aria-label="Which addresses"
        value={exactly ? "exactly" : "any"}
        onChange={(value) => setExactly(value === "exactly")}
        data={[
          { value: "any", label: "Any, in one piece" },
          { value: "exactly", label: "Exactly these (pin)" },
        ]}
      />
      {exactly ? (
        <SimpleGrid cols={2} spacing="sm">
          <AddressInput label="First address" value={form.start} onChange={(start) => change({ start })} />
          <AddressInput label="Last address" value={form.end} onChange={(end) => change({ end })} />
        </SimpleGrid>
      ) : (
        <NumberInput label="How many" min={1} value={form.count} onChange={(value) => change({ count: value })} />
      )}
      <section className={classes.preview} aria-label="Preview" aria-live="polite">
        {body === null && <Text c="dimmed">Fill in the form, and what the request would get is shown here.</Text>}
        {body !== null && preview.isError && <ProblemAlert error={preview.error} />}
        {body !== null && preview.isPending && <LinesSkeleton lines={2} />}
        {body !== null && preview.data && !preview.isError && (
          <div className={classes.rows}>
            <div>
              <StatusBadge health={preview.data.granted ? "ok" : "warning"}>
                {preview.data.granted ? "Would be granted" : "Would not be granted now"}
              </StatusBadge>{" "}
              {preview.data.range && (
                <span>
                  <span className="mono">{rangeInWords(preview.data.range.start, preview.data.range.end)}</span>,{" "}
                  {plural(preview.data.range.count, "address", "addresses")}
                </span>
              )}
            </div>
            {preview.data.message && <Text fz="sm">{preview.data.message}</Text>}
            <CopyBlock text={preview.data.yaml} what="the object as YAML" />
          </div>
        )}
      </section>
    </FormDialog>
  );
}

function AddressInput({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <TextInput
      label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={value && parseAddress(value.trim()) === null ? "Not an address" : null}
      spellCheck={false}
      autoComplete="off"
    />
  );
}

function bodyOf(form: Form, pool: string, exactly: boolean): AllocationCreate | null {
  const { name, tenant, tenantNamespace, type, count } = form;
  if (!name || !tenant || !tenantNamespace) return null;
  const who = { name: name.trim(), pool, tenant: tenant.trim(), tenantNamespace: tenantNamespace.trim(), type };
  if (!exactly) return typeof count === "number" && count > 0 ? { ...who, count } : null;
  const [start, end] = [form.start.trim(), form.end.trim()];
  return parseAddress(start) !== null && parseAddress(end) !== null ? { ...who, start, end } : null;
}
