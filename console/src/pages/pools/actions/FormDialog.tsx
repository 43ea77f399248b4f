// A dialog with a form, what the form would do, and the button that does it.
import { Button, Group, Modal, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { ProblemAlert } from "../../../components/ProblemAlert";
import { useFocusBack } from "../../../components/useFocusBack";

interface FormDialogProps {
  title: string;
  /** The verb on the button. */
  confirm: string;
  /** Nothing can be sent yet. */
  blocked: boolean;
  busy: boolean;
  error: unknown;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog({ title, confirm, blocked, busy, error, onSubmit, onClose, children }: FormDialogProps) {
  useFocusBack();
  return (
    <Modal opened onClose={onClose} title={title} size="lg">
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!blocked && !busy) onSubmit();
        }}
      >
        <Stack gap="md">
          {children}
          {error != null && <ProblemAlert error={error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={blocked}>
              {confirm}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
