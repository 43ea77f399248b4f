// Everything once more, before it is created.
import type { ReactNode } from "react";
import classes from "./create.module.css";
import type { TenantDraft } from "./useTenantDraft";

export function ReviewStep({ draft: { form, preview } }: { draft: TenantDraft }) {
  const size = [
    form.cpu && `${form.cpu} CPUs`,
    form.memory && `${form.memory} memory`,
    form.disk && `${form.disk} disk`,
  ].filter(Boolean);
  return (
    <dl className={classes.summary}>
      <Line title="Tenant">
        {form.name && form.namespace ? `${form.namespace}/${form.name}` : "no name or no namespace yet"}
      </Line>
      <Line title="Kubernetes">{form.version || "no version yet"}</Line>
      <Line title="Team">{form.team || "none"}</Line>
      <Line title="Provider">
        {form.provider || `the platform's default${preview.data?.provider ? `, ${preview.data.provider}` : ""}`}
      </Line>
      <Line title="Workers">
        {form.workers || "no number yet"}
        {size.length > 0 && `, each with ${size.join(", ")}`}
      </Line>
      <Line title="Load balancers">
        {form.lbPoolSize ? `${form.lbPoolSize} addresses to start with` : "as many as the provider says"}
      </Line>
    </dl>
  );
}

function Line({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </>
  );
}
