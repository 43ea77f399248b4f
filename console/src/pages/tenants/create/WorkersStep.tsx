// How many machines, and how large.
import { NumberInput, TextInput } from "@mantine/core";
import classes from "./create.module.css";
import type { TenantDraft } from "./useTenantDraft";

export function WorkersStep({ draft: { form, change, errorOf } }: { draft: TenantDraft }) {
  return (
    <div className={classes.fields}>
      <NumberInput
        label="Workers"
        description="Each needs a node address."
        withAsterisk
        min={1}
        max={5000}
        allowDecimal={false}
        value={form.workers}
        onChange={(value) => change({ workers: String(value) })}
        error={errorOf("workers")}
      />
      <NumberInput
        label="CPUs of each"
        description="4 unless told."
        placeholder="4"
        min={1}
        allowDecimal={false}
        value={form.cpu}
        onChange={(value) => change({ cpu: String(value) })}
        error={errorOf("cpu")}
      />
      <TextInput
        label="Memory of each"
        description="Such as 32Gi; 16Gi unless told."
        placeholder="16Gi"
        value={form.memory}
        onChange={(event) => change({ memory: event.currentTarget.value })}
        error={errorOf("memory")}
        autoComplete="off"
        spellCheck={false}
      />
      <TextInput
        label="Disk of each"
        description="Such as 200Gi; 100Gi unless told."
        placeholder="100Gi"
        value={form.disk}
        onChange={(event) => change({ disk: event.currentTarget.value })}
        error={errorOf("disk")}
        autoComplete="off"
        spellCheck={false}
      />
    </div>
  );
}
