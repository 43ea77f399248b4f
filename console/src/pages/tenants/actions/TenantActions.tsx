// What can be done to a tenant. Each asks first, and shows what it would do to addresses.
import { notifications } from "@mantine/notifications";
import { IconArrowUp, IconArrowsMaximize, IconKey, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useSignedIn } from "../../../api/session";
import type { TenantDetail } from "../../../api/types";
import { GuardedButton, unless } from "../../../components/GuardedButton";
import { DeleteDialog } from "./DeleteDialog";
import { KubeconfigDialog } from "./KubeconfigDialog";
import { ScaleDialog } from "./ScaleDialog";
import { UpgradeDialog } from "./UpgradeDialog";

type Action = "scale" | "upgrade" | "kubeconfig" | "delete";

export interface ActionDialogProps {
  detail: TenantDetail;
  opened: boolean;
  onClose: () => void;
  /** Says what was done. */
  onDone: (message: string) => void;
}

export function TenantActions({ detail }: { detail: TenantDetail }) {
  const { permissions } = useSignedIn();
  const [open, setOpen] = useState<Action | null>(null);
  const { name, deleting, phase } = detail.tenant;
  const gone = deleting ? `${name} is being deleted.` : "";
  const edits = gone || unless(permissions.editTenants, "change tenants");
  const early = ["Pending", "Provisioning"].includes(phase) ? `${name} has no kubeconfig yet (${phase}).` : "";
  const props = (action: Action): ActionDialogProps => ({
    detail,
    opened: open === action,
    onClose: () => setOpen(null),
    onDone: (message) => {
      setOpen(null);
      notifications.show({ title: name, message });
    },
  });
  return (
    <>
      <GuardedButton
        variant="default"
        leftSection={<IconArrowsMaximize size={15} />}
        reason={edits}
        onClick={() => setOpen("scale")}
      >
        Scale
      </GuardedButton>
      <GuardedButton
        variant="default"
        leftSection={<IconArrowUp size={15} />}
        reason={edits}
        onClick={() => setOpen("upgrade")}
      >
        Upgrade
      </GuardedButton>
      <GuardedButton
        variant="default"
        leftSection={<IconKey size={15} />}
        reason={early || unless(permissions.readSecrets, "read Secrets")}
        onClick={() => setOpen("kubeconfig")}
      >
        Kubeconfig
      </GuardedButton>
      <GuardedButton
        variant="default"
        leftSection={<IconTrash size={15} />}
        reason={gone || unless(permissions.deleteTenants, "delete tenants")}
        onClick={() => setOpen("delete")}
      >
        Delete
      </GuardedButton>
      <ScaleDialog {...props("scale")} />
      <UpgradeDialog {...props("upgrade")} />
      <KubeconfigDialog {...props("kubeconfig")} />
      <DeleteDialog {...props("delete")} />
    </>
  );
}
