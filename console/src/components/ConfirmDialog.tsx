// Asks before something is done, most often what cannot be undone. With `typeName`, the name has to be typed first.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { ProblemAlert } from "./ProblemAlert";
import { useFocusBack } from "./useFocusBack";

interface ConfirmDialogProps {
  opened: boolean;
  title: string;
  /** What will happen: written so that the reader does not have to guess. */
  children: ReactNode;
  /** The verb on the button, such as "Delete pool". */
  confirm: string;
  typeName?: string;
  /** For what can be undone: without the colour of danger. */
  harmless?: boolean;
  busy?: boolean;
  /** Nothing can be confirmed yet, such as while the effect is still being worked out. */
  blocked?: boolean;
  error?: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title} size="lg">
      <Question {...props} />
    </Modal>
  );
}

function Question({
  children,
  confirm,
  typeName,
  harmless = false,
  busy,
  blocked,
  error,
  onConfirm,
  onClose,
}: ConfirmDialogProps) {
  const [typed, setTyped] = useState("");
  useFocusBack();
  const sure = typeName === undefined || typed.trim() === typeName;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (sure && !blocked) onConfirm();
      }}
    >
      <Stack gap="md">
        {children}
        {typeName !== undefined && (
          <TextInput
            label={
              <>
                Type <code>{typeName}</code> to go on
              </>
            }
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            spellCheck={false}
            data-autofocus
          />
        )}
        {error != null && <ProblemAlert error={error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color={harmless ? undefined : "red.8"} loading={busy} disabled={!sure || blocked}>
            {confirm}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
