import { Text } from "@mantine/core";
import { useNavigate } from "react-router";
import { useDeletePool } from "../../../api/pools";
import type { PoolItem } from "../../../api/types";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { paths } from "../../../paths";
import { plural } from "../../../words";
import { Notes } from "../Notes";
import { told } from "./told";

export function DeletePoolDialog({ pool, onClose }: { pool: PoolItem; onClose: () => void }) {
  const remove = useDeletePool(pool.namespace, pool.name);
  const navigate = useNavigate();
  return (
    <ConfirmDialog
      opened
      title={`Delete ${pool.name}`}
      confirm="Delete the pool"
      typeName={pool.name}
      busy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() =>
        remove.mutate(pool.resourceVersion, {
          onSuccess: () => {
            told(`${pool.name} is being deleted`, onClose)(undefined);
            void navigate(paths.pools);
          },
        })
      }
    >
      <Text>
        The network <span className="mono">{pool.cidr}</span> is no longer handed out.
      </Text>
      {pool.allocationCount > 0 && (
        <Notes
          health="warning"
          title="It stays until it is empty"
          notes={[`${plural(pool.allocationCount, "allocation")} of it would have to be released first.`]}
        />
      )}
      {pool.providers.length > 0 && (
        <Notes health="warning" title="Providers hand out its addresses" notes={pool.providers} />
      )}
    </ConfirmDialog>
  );
}
