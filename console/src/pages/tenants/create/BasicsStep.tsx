// Name, place and version.
import { Autocomplete, TextInput } from "@mantine/core";
import { useTenants } from "../../../api/tenants";
import classes from "./create.module.css";
import type { TenantDraft } from "./useTenantDraft";

export function BasicsStep({ draft: { form, change, errorOf } }: { draft: TenantDraft }) {
  const known = useTenants({ sort: "-createdAt", limit: 100 }).data?.items ?? [];
  return (
    <div className={classes.fields}>
      <TextInput
        label="Name"
        description="Lower-case letters, digits and hyphens."
        withAsterisk
        value={form.name}
        onChange={(event) => change({ name: event.currentTarget.value })}
        error={form.name ? errorOf("name") : undefined}
        autoComplete="off"
        spellCheck={false}
      />
      <Autocomplete
        size="xs"
        label="Namespace"
        description="The team's own; it has to exist."
        withAsterisk
        data={unique(known.map(({ namespace }) => namespace))}
        value={form.namespace}
        onChange={(namespace) => change({ namespace })}
        error={form.namespace ? errorOf("namespace") : undefined}
        autoComplete="off"
      />
      <Autocomplete
        size="xs"
        label="Kubernetes version"
        description="Such as v1.33.2."
        withAsterisk
        data={unique(known.map(({ version }) => version)).reverse()}
        value={form.version}
        onChange={(version) => change({ version })}
        error={errorOf("version")}
        autoComplete="off"
      />
      <Autocomplete
        size="xs"
        label="Team"
        description="Who owns it; may be left out."
        data={unique(known.map(({ team }) => team))}
        value={form.team}
        onChange={(team) => change({ team })}
        error={errorOf("team")}
        autoComplete="off"
      />
    </div>
  );
}

function unique(values: string[]): string[] {
  return [...new Set(values.filter((value) => value !== ""))].sort();
}
