// The administrator's kubeconfig: a secret. It goes straight into a file and is kept nowhere in the page.
import { Checkbox, Text } from "@mantine/core";
import { useState } from "react";
import { useKubeconfig } from "../../../api/tenants";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import type { ActionDialogProps } from "./TenantActions";

export function KubeconfigDialog({ detail, opened, onClose, onDone }: ActionDialogProps) {
  const { namespace, name } = detail.tenant;
  const [agreed, setAgreed] = useState(false);
  const kubeconfig = useKubeconfig(namespace, name);
  const close = () => {
    setAgreed(false);
    kubeconfig.reset();
    onClose();
  };
  return (
    <ConfirmDialog
      opened={opened}
      title={`Kubeconfig of ${name}`}
      confirm="Download"
      harmless
      busy={kubeconfig.isPending}
      blocked={!agreed}
      error={kubeconfig.error}
      onClose={close}
      onConfirm={() =>
        kubeconfig.mutate(undefined, {
          onSuccess: ({ kubeconfig: text, filename }) => {
            save(text, filename);
            kubeconfig.reset();
            setAgreed(false);
            onDone(`${filename} was saved. Keep it where no other user can read it.`);
          },
        })
      }
    >
      <Text fz="sm">
        The holder of this file is administrator of <strong>{`${namespace}/${name}`}</strong>, until its certificate
        ends. Give people kubeconfigs of their own, and keep this one to yourself.
      </Text>
      <Text fz="sm">That you took it is written down, with your name and the time.</Text>
      <Checkbox
        label="I need it, and I keep it secret"
        checked={agreed}
        onChange={(event) => setAgreed(event.currentTarget.checked)}
        data-autofocus
      />
    </ConfirmDialog>
  );
}

function save(text: string, filename: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = filename;
  link.click();
  URL.revokeObjectURL(url);
}
