// The end of a tenant, with what goes with it.
import { List, Text } from "@mantine/core";
import { useDeleteTenant } from "../../../api/tenants";
import { AddressText } from "../../../components/AddressText";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { plural, typeInWords } from "../../../words";
import type { ActionDialogProps } from "./TenantActions";

export function DeleteDialog({ detail, opened, onClose, onDone }: ActionDialogProps) {
  const { namespace, name, resourceVersion, workersReady, loadBalancersInUse } = detail.tenant;
  const deletion = useDeleteTenant(namespace, name);
  const blocks = (detail.blocks ?? []).filter(({ range }) => range);
  return (
    <ConfirmDialog
      opened={opened}
      title={`Delete ${name}`}
      confirm="Delete tenant"
      typeName={name}
      busy={deletion.isPending}
      error={deletion.error}
      onClose={() => {
        deletion.reset();
        onClose();
      }}
      onConfirm={() =>
        deletion.mutate(resourceVersion, {
          onSuccess: () => onDone("It is being taken down. Its addresses go back last."),
        })
      }
    >
      <Text fz="sm">
        Everything on it goes: {plural(workersReady, "worker")}, all that runs on them, and the data on their disks.
        This cannot be undone.
      </Text>
      {loadBalancersInUse !== null && loadBalancersInUse > 0 && (
        <Text fz="sm">
          <strong>{plural(loadBalancersInUse, "address is", "addresses are")} in use by Services now</strong>; they will
          no longer be reached.
        </Text>
      )}
      {blocks.length > 0 && (
        <div>
          <Text fz="sm">These addresses go back to their pools when all else is gone:</Text>
          <List fz="sm" mt={4}>
            {blocks.map((block) => (
              <List.Item key={block.allocation}>
                <AddressText range={block.range} /> of {block.pool}, for {typeInWords(block.type)}
              </List.Item>
            ))}
          </List>
        </div>
      )}
    </ConfirmDialog>
  );
}
