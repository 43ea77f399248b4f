// More or fewer workers.
import { NumberInput, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { asProblem } from "../../../api/problem";
import { useScale, useTenantPreview } from "../../../api/tenants";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { plural } from "../../../words";
import { AddressPreview } from "../AddressPreview";
import { withField } from "../manifest";
import type { ActionDialogProps } from "./TenantActions";

const MOST_WORKERS = 5000;
const PAUSE_MS = 250;

export function ScaleDialog({ detail, opened, onClose, onDone }: ActionDialogProps) {
  const { namespace, name, workersWanted, resourceVersion } = detail.tenant;
  const [typed, setTyped] = useState<number | null>(null);
  const workers = typed ?? workersWanted;
  const [settled] = useDebouncedValue(workers, PAUSE_MS);
  const changes = settled !== workersWanted && settled > 0;
  const manifest = opened && changes ? withField(detail.yaml, ["spec", "workers", "replicas"], settled) : null;
  const preview = useTenantPreview(manifest);
  const scale = useScale(namespace, name);
  const close = () => {
    setTyped(null);
    scale.reset();
    onClose();
  };
  return (
    <ConfirmDialog
      opened={opened}
      title={`Scale ${name}`}
      confirm="Scale"
      harmless
      busy={scale.isPending}
      blocked={workers === workersWanted || preview.data?.allowed === false}
      error={scale.error && asProblem(scale.error).errors.length === 0 ? scale.error : null}
      onClose={close}
      onConfirm={() =>
        scale.mutate(
          { workers, resourceVersion },
          {
            onSuccess: () => {
              setTyped(null);
              onDone(`It goes to ${plural(workers, "worker")}.`);
            },
          },
        )
      }
    >
      <NumberInput
        label="Workers"
        description={`Now ${workersWanted}, of which ${detail.tenant.workersReady} are ready.`}
        value={workers}
        onChange={(value) => setTyped(typeof value === "number" ? value : 0)}
        min={1}
        max={MOST_WORKERS}
        allowDecimal={false}
        error={scale.error ? asProblem(scale.error).errors[0]?.message : undefined}
        data-autofocus
      />
      <section aria-label="What it does to addresses">
        {changes ? (
          <AddressPreview preview={preview} nothing="It needs no more addresses than it has." />
        ) : (
          <Text fz="sm" c="dimmed">
            What it does to addresses is told here as soon as the number changes.
          </Text>
        )}
      </section>
      {workers < workersWanted && (
        <Text fz="sm">Machines go one by one. Node addresses that become free stay with the tenant.</Text>
      )}
    </ConfirmDialog>
  );
}
