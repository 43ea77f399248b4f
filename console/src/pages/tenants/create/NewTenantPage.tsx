// A new tenant: a form and its manifest side by side, and the addresses that it would get.
import { Button, Fieldset, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useRef } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { useSignedIn } from "../../../api/session";
import { useCreateTenant } from "../../../api/tenants";
import { GuardedButton, unless } from "../../../components/GuardedButton";
import { Page } from "../../../components/Page";
import { Panel } from "../../../components/Panel";
import { ProblemAlert } from "../../../components/ProblemAlert";
import { YamlEditor } from "../../../components/YamlEditor";
import { paths } from "../../../paths";
import { AddressPreview } from "../AddressPreview";
import { BasicsStep } from "./BasicsStep";
import classes from "./create.module.css";
import { NetworkingStep } from "./NetworkingStep";
import { ProviderStep } from "./ProviderStep";
import { ReviewStep } from "./ReviewStep";
import { StepList } from "./StepList";
import { STEPS, type Step } from "./steps";
import { fieldOfError } from "./tenantForm";
import { BLANK, useTenantDraft, type TenantDraft } from "./useTenantDraft";
import { WorkersStep } from "./WorkersStep";

export function NewTenantPage() {
  const draft = useTenantDraft();
  const { step, go, heading } = useSteps();
  const at = STEPS.indexOf(step);
  const before = STEPS[at - 1];
  const after = STEPS[at + 1];
  return (
    <Page
      title="New tenant"
      trail={[{ title: "Tenants", to: paths.tenants }]}
      subtitle="Fill in the form or write the manifest: each follows the other. Nothing is created before the last step."
      actions={
        draft.text !== BLANK && (
          <Button variant="default" onClick={() => draft.setText(BLANK)}>
            Start over
          </Button>
        )
      }
    >
      <div className={classes.columns}>
        <Stack gap="md">
          <Panel title={step.title}>
            <StepList current={step} draft={draft} onGo={go} />
            <div ref={heading} tabIndex={-1} className={classes.step}>
              <Fieldset variant="unstyled" disabled={draft.textError !== null} aria-label={step.title}>
                <Fields step={step} draft={draft} />
              </Fieldset>
              {draft.textError && (
                <Text fz="sm" c="var(--critical)" mt="sm" role="status">
                  The manifest cannot be read. Mend it first; the form then follows it.
                </Text>
              )}
            </div>
            <Group justify="space-between" mt="lg">
              <Button variant="default" disabled={!before} onClick={() => before && go(before)}>
                Back
              </Button>
              {after ? <Button onClick={() => go(after)}>Next: {after.title}</Button> : <CreateButton draft={draft} />}
            </Group>
          </Panel>
          <Panel
            title="Addresses it would get"
            hint="From the pools as they are now; nothing is held for it before it is created."
          >
            {draft.form.name && draft.form.namespace ? (
              <AddressPreview
                preview={draft.preview}
                nothing="None: its provider leaves addresses to the cloud."
                shownElsewhere={({ field }) => fieldOfError(field) !== null}
              />
            ) : (
              <Text fz="sm" c="dimmed">
                Give it a name and a namespace, and what it would get is told here.
              </Text>
            )}
          </Panel>
        </Stack>
        <Panel title="Manifest" hint="What the form does not know is kept as you write it.">
          <YamlEditor
            label="Manifest of the new tenant"
            value={draft.text}
            onChange={draft.setText}
            error={draft.textError}
            least={24}
          />
        </Panel>
      </div>
    </Page>
  );
}

function Fields({ step, draft }: { step: Step; draft: TenantDraft }) {
  switch (step.id) {
    case "basics":
      return <BasicsStep draft={draft} />;
    case "provider":
      return <ProviderStep draft={draft} />;
    case "workers":
      return <WorkersStep draft={draft} />;
    case "networking":
      return <NetworkingStep draft={draft} />;
    case "review":
      return <ReviewStep draft={draft} />;
  }
}

function CreateButton({ draft }: { draft: TenantDraft }) {
  const { permissions } = useSignedIn();
  const navigate = useNavigate();
  const create = useCreateTenant();
  const { name, namespace } = draft.form;
  const unready =
    draft.textError !== null
      ? "The manifest cannot be read."
      : !name || !namespace
        ? "It needs a name and a namespace."
        : draft.preview.data && draft.preview.data.errors.length > 0
          ? "It would be refused: see what is marked."
          : "";
  const send = () => {
    const manifest = draft.manifest();
    if (!manifest) return;
    create.mutate(manifest, {
      onSuccess: ({ namespace: where, name: made, warnings }) => {
        draft.forget();
        notifications.show({ title: made, message: ["It was created.", ...(warnings ?? [])].join(" ") });
        void navigate(paths.tenant(where, made));
      },
    });
  };
  return (
    <Stack gap="xs" align="flex-end">
      {create.error && <ProblemAlert error={create.error} />}
      <GuardedButton
        loading={create.isPending}
        reason={unless(permissions.createTenants, "create tenants") || unready}
        onClick={send}
      >
        {draft.preview.data?.waits && draft.preview.data.obstacle ? "Create, and let it wait" : "Create tenant"}
      </GuardedButton>
    </Stack>
  );
}

/** Which step is shown is part of the page's address. The focus follows, so that the next Tab is in the step's first field. */
function useSteps() {
  const [params, setParams] = useSearchParams();
  const heading = useRef<HTMLDivElement>(null);
  const step = STEPS.find(({ id }) => id === params.get("step")) ?? STEPS[0];
  const go = ({ id }: Step) => {
    setParams({ step: id }, { preventScrollReset: true });
    heading.current?.focus({ preventScroll: true });
  };
  return { step, go, heading };
}
