// The manifest of a tenant: to read, and to edit. What was written meanwhile by another user is never lost silently:
// the server takes a change only to what was shown, and the page says so before it is sent.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { asProblem } from "../../../api/problem";
import { useSignedIn } from "../../../api/session";
import { useEditTenant, useTenantPreview } from "../../../api/tenants";
import type { TenantDetail } from "../../../api/types";
import { CopyBlock } from "../../../components/CopyText";
import { GuardedButton, unless } from "../../../components/GuardedButton";
import { Panel } from "../../../components/Panel";
import { ProblemAlert } from "../../../components/ProblemAlert";
import { YamlEditor } from "../../../components/YamlEditor";
import { AddressPreview } from "../AddressPreview";
import { parseManifest } from "../manifest";
import classes from "./detail.module.css";

const PAUSE_MS = 400;

interface Draft {
  text: string;
  /** What was shown when the editing began, or when the user looked at what is there now. */
  base: string;
  resourceVersion: string;
}

export function YamlTab({ detail }: { detail: TenantDetail }) {
  const { permissions } = useSignedIn();
  const { tenant, yaml } = detail;
  const [draft, setDraft] = useState<Draft | null>(null);
  const begin = () => setDraft({ text: yaml, base: yaml, resourceVersion: tenant.resourceVersion });
  if (draft) return <Editing detail={detail} draft={draft} onChange={setDraft} />;
  const reason = tenant.deleting
    ? `${tenant.name} is being deleted.`
    : unless(permissions.editTenants, "change tenants");
  return (
    <Panel
      title="Manifest"
      hint="As you would write it into a file: without its status."
      actions={
        <GuardedButton variant="default" reason={reason} onClick={begin}>
          Edit
        </GuardedButton>
      }
    >
      <CopyBlock text={yaml} what="manifest" />
    </Panel>
  );
}

interface EditingProps {
  detail: TenantDetail;
  draft: Draft;
  onChange: (draft: Draft | null) => void;
}

function Editing({ detail: { tenant, yaml }, draft, onChange }: EditingProps) {
  const edit = useEditTenant(tenant.namespace, tenant.name);
  const { manifest, error } = parseManifest(draft.text);
  const [settled] = useDebouncedValue(draft.text, PAUSE_MS);
  const preview = useTenantPreview(settled === draft.base ? null : parseManifest(settled).manifest);
  const moved = yaml !== draft.base;
  const conflict = edit.error !== null && asProblem(edit.error).status === 412;
  const save = () => {
    if (!manifest) return;
    edit.mutate(
      { manifest, resourceVersion: draft.resourceVersion },
      {
        onSuccess: ({ warnings }) => {
          notifications.show({
            title: tenant.name,
            message: ["The manifest was written.", ...(warnings ?? [])].join(" "),
          });
          onChange(null);
        },
      },
    );
  };
  return (
    <div className={classes.columns}>
      <Panel
        title="Edit the manifest"
        actions={
          <>
            <Button variant="default" onClick={() => onChange(null)}>
              Cancel
            </Button>
            <Button onClick={save} loading={edit.isPending} disabled={!manifest || draft.text === draft.base || moved}>
              Write
            </Button>
          </>
        }
      >
        <Stack gap="sm">
          {moved || conflict ? (
            <Moved
              yaml={yaml}
              onOver={() => {
                edit.reset();
                onChange({ ...draft, base: yaml, resourceVersion: tenant.resourceVersion });
              }}
              onTake={() => {
                edit.reset();
                onChange({ text: yaml, base: yaml, resourceVersion: tenant.resourceVersion });
              }}
            />
          ) : (
            edit.error && <ProblemAlert error={edit.error} />
          )}
          <YamlEditor
            label={`Manifest of ${tenant.name}`}
            value={draft.text}
            onChange={(text) => onChange({ ...draft, text })}
            error={error}
          />
        </Stack>
      </Panel>
      <Panel title="What it does to addresses" hint="Asked of the server as you type; nothing is written.">
        {draft.text === draft.base ? (
          <Text fz="sm" c="dimmed">
            Nothing is changed yet.
          </Text>
        ) : (
          <AddressPreview preview={preview} nothing="It keeps the addresses that it has, and needs no more." />
        )}
      </Panel>
    </div>
  );
}

function Moved({ yaml, onOver, onTake }: { yaml: string; onOver: () => void; onTake: () => void }) {
  const [shown, setShown] = useState(false);
  return (
    <div className={classes.waiting} role="alert">
      <div>
        <Text fz="sm" fw={600}>
          Another user has changed this tenant since you began
        </Text>
        <Text fz="sm">Nothing was written. Look at what is there now, then decide which of the two is to stay.</Text>
        <Group gap="xs" mt="xs">
          <Button variant="default" aria-expanded={shown} onClick={() => setShown(!shown)}>
            {shown ? "Hide what is there now" : "Show what is there now"}
          </Button>
          <Button variant="default" onClick={onOver}>
            Keep my text, to write over it
          </Button>
          <Button variant="default" onClick={onTake}>
            Drop my text
          </Button>
        </Group>
        {shown && (
          <Stack mt="xs">
            <CopyBlock text={yaml} what="manifest that is there now" />
          </Stack>
        )}
      </div>
    </div>
  );
}
