// A button that says why it cannot be used. It stays reachable by keyboard, so that the reason can be read there too;
// Kubernetes decides in the end anyway.
import { Button, Tooltip, type ButtonProps } from "@mantine/core";
import type { ComponentPropsWithoutRef } from "react";

interface GuardedButtonProps extends ButtonProps, Omit<ComponentPropsWithoutRef<"button">, keyof ButtonProps> {
  /** Why it cannot be used now; empty when it can. */
  reason: string;
}

export function GuardedButton({ reason, onClick, ...button }: GuardedButtonProps) {
  if (reason === "") return <Button {...button} onClick={onClick} />;
  return (
    <Tooltip label={reason} multiline maw={280}>
      <Button
        {...button}
        type="button"
        aria-disabled
        data-disabled
        aria-description={reason}
        onClick={(event) => event.preventDefault()}
      />
    </Tooltip>
  );
}

/** The reason for a permission that the person lacks. */
export function unless(allowed: boolean, verb: string): string {
  return allowed ? "" : `You may not ${verb}: ask an administrator of Butler for the right to do so.`;
}
