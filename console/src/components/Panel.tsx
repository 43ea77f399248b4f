// A part of a page with a title of its own.
import { Group, Text, Title } from "@mantine/core";
import { useId, type ReactNode } from "react";
import classes from "./Panel.module.css";

interface PanelProps {
  title: string;
  /** One sentence on what is to be seen here. */
  hint?: ReactNode;
  actions?: ReactNode;
  /** Without padding, for tables that reach from edge to edge. */
  flush?: boolean;
  children: ReactNode;
}

export function Panel({ title, hint, actions, flush = false, children }: PanelProps) {
  const id = useId();
  return (
    <section aria-labelledby={id} className={classes.panel}>
      <Group justify="space-between" gap="xs" className={classes.head}>
        <div className={classes.words}>
          <Title order={2} id={id}>
            {title}
          </Title>
          {hint && (
            <Text fz="xs" c="dimmed" component="div">
              {hint}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      <div className={flush ? classes.flush : classes.body}>{children}</div>
    </section>
  );
}
