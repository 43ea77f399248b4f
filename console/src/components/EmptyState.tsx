// Nothing to show, and what to do about it.
import { Stack, Text } from "@mantine/core";
import { IconInbox, type Icon } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface EmptyStateProps {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  icon?: Icon;
}

export function EmptyState({ title, children, action, icon: Icon = IconInbox }: EmptyStateProps) {
  return (
    <Stack align="center" gap={6} py="xl" px="md" ta="center">
      <Icon size={28} stroke={1.4} color="var(--neutral)" aria-hidden />
      <Text fw={600}>{title}</Text>
      {children && (
        <Text c="dimmed" fz="sm" maw="32rem" component="div">
          {children}
        </Text>
      )}
      {action}
    </Stack>
  );
}
