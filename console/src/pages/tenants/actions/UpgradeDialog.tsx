// Another version of Kubernetes: up by one minor version at a time, never back.
import { Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { asProblem } from "../../../api/problem";
import { useTenantPreview, useUpgrade } from "../../../api/tenants";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { AddressPreview } from "../AddressPreview";
import { withField } from "../manifest";
import type { ActionDialogProps } from "./TenantActions";

const VERSION = /^v\d+\.\d+\.\d+$/;
const PAUSE_MS = 300;

export function UpgradeDialog({ detail, opened, onClose, onDone }: ActionDialogProps) {
  const { namespace, name, version: runs, goesTo, resourceVersion } = detail.tenant;
  const now = goesTo || runs;
  const [version, setVersion] = useState("");
  const [settled] = useDebouncedValue(version.trim(), PAUSE_MS);
  const asks = opened && VERSION.test(settled) && settled !== now;
  const preview = useTenantPreview(asks ? withField(detail.yaml, ["spec", "kubernetesVersion"], settled) : null);
  const upgrade = useUpgrade(namespace, name);
  const refused = upgrade.error ? asProblem(upgrade.error) : null;
  const close = () => {
    setVersion("");
    upgrade.reset();
    onClose();
  };
  return (
    <ConfirmDialog
      opened={opened}
      title={`Upgrade ${name}`}
      confirm="Upgrade"
      harmless
      busy={upgrade.isPending}
      blocked={!VERSION.test(version.trim()) || version.trim() === now || preview.data?.allowed === false}
      error={refused?.errors.length === 0 ? refused : null}
      onClose={close}
      onConfirm={() =>
        upgrade.mutate(
          { version: version.trim(), resourceVersion },
          {
            onSuccess: () => {
              setVersion("");
              onDone(`It goes to ${version.trim()}.`);
            },
          },
        )
      }
    >
      <TextInput
        label="Version"
        description={`Now ${now || "not known"}. One minor version at a time, never back.`}
        placeholder={nextMinor(now)}
        value={version}
        onChange={(event) => {
          setVersion(event.currentTarget.value);
          upgrade.reset();
        }}
        error={
          refused?.errors[0]?.message ??
          (version && !VERSION.test(version.trim()) ? "Write it as in v1.34.1" : undefined)
        }
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
      <Text fz="sm">
        The control plane goes first, then machines are replaced one by one. With a node address to spare, the new
        machine comes before the old one goes; without, the old one goes first.
      </Text>
      <section aria-label="What it does to addresses">
        {asks && <AddressPreview preview={preview} nothing="It keeps the addresses that it has, and needs no more." />}
      </section>
    </ConfirmDialog>
  );
}

/** `v1.34.0` after `v1.33.2`. */
function nextMinor(version: string): string {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
  return major && minor ? `v${major}.${Number(minor) + 1}.0` : "v1.34.1";
}
