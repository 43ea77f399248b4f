// A part of the question that can be turned on and off.
import { Stack, Switch } from "@mantine/core";
import type { ReactNode } from "react";
import { Panel } from "../../components/Panel";

interface AskPanelProps {
  title: string;
  hint: string;
  on: boolean;
  onTurn: (on: boolean) => void;
  children: ReactNode;
}

export function AskPanel({ title, hint, on, onTurn, children }: AskPanelProps) {
  return (
    <Panel
      title={title}
      hint={hint}
      actions={<Switch aria-label={title} checked={on} onChange={(event) => onTurn(event.currentTarget.checked)} />}
    >
      {on && <Stack gap="sm">{children}</Stack>}
    </Panel>
  );
}
