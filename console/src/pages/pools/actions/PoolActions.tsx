// What can be done with a pool. Each dialog shows what it would do before anything is done.
import { ActionIcon, Menu } from "@mantine/core";
import { IconArrowsMaximize, IconDots, IconLock, IconPlus, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useSignedIn } from "../../../api/session";
import type { PoolDetail } from "../../../api/types";
import { GuardedButton, unless } from "../../../components/GuardedButton";
import { AllocateDialog } from "./AllocateDialog";
import { DeletePoolDialog } from "./DeletePoolDialog";
import { GrowDialog } from "./GrowDialog";
import { ReserveDialog } from "./ReserveDialog";

type Action = "grow" | "reserve" | "allocate" | "delete";

export function PoolActions({ detail }: { detail: PoolDetail }) {
  const { permissions } = useSignedIn();
  const [doing, setDoing] = useState<Action | null>(null);
  const close = () => setDoing(null);
  return (
    <>
      <GuardedButton
        variant="default"
        leftSection={<IconArrowsMaximize size={14} />}
        reason={unless(permissions.editPools, "change pools")}
        onClick={() => setDoing("grow")}
      >
        Grow
      </GuardedButton>
      <GuardedButton
        variant="default"
        leftSection={<IconLock size={14} />}
        reason={unless(permissions.editPools, "change pools")}
        onClick={() => setDoing("reserve")}
      >
        Reserve
      </GuardedButton>
      <GuardedButton
        leftSection={<IconPlus size={14} />}
        reason={unless(permissions.createAllocations, "ask for addresses")}
        onClick={() => setDoing("allocate")}
      >
        Allocate
      </GuardedButton>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size={30} aria-label="More actions">
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            color="var(--critical)"
            leftSection={<IconTrash size={14} />}
            disabled={!permissions.deletePools}
            onClick={() => setDoing("delete")}
          >
            Delete pool …
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {doing === "grow" && <GrowDialog detail={detail} onClose={close} />}
      {doing === "reserve" && <ReserveDialog detail={detail} onClose={close} />}
      {doing === "allocate" && <AllocateDialog pool={detail.pool} onClose={close} />}
      {doing === "delete" && <DeletePoolDialog pool={detail.pool} onClose={close} />}
    </>
  );
}
