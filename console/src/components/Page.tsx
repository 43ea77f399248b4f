// What every page is in: its title (also of the browser's tab), the way back, and what can be done here.
import { Anchor, Breadcrumbs, Group, Stack, Text, Title } from "@mantine/core";
import { useEffect, useRef, type ReactNode } from "react";
import { Link, useLocation } from "react-router";
import classes from "./Page.module.css";

interface PageProps {
  title: string;
  /** Pages above this one. */
  trail?: { title: string; to: string }[];
  /** Beside the title: a state, a network. */
  badge?: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, trail = [], badge, subtitle, actions, children }: PageProps) {
  const heading = useFocusAfterNavigation();
  useEffect(() => {
    document.title = `${title} · Butler`;
  }, [title]);
  return (
    <Stack gap="md" className={classes.page}>
      <Stack component="header" gap={4}>
        {trail.length > 0 && (
          <Breadcrumbs component="nav" aria-label="Breadcrumb" separator="/" separatorMargin={6} fz="xs">
            {trail.map(({ title: above, to }) => (
              <Anchor key={to} component={Link} to={to} fz="xs">
                {above}
              </Anchor>
            ))}
          </Breadcrumbs>
        )}
        <Group justify="space-between" gap="sm" align="flex-start">
          <Stack gap={4} className={classes.title}>
            <Group gap="sm">
              <Title order={1} ref={heading} tabIndex={-1} className={classes.heading}>
                {title}
              </Title>
              {badge}
            </Group>
            {subtitle && (
              <Text c="dimmed" fz="sm" component="div">
                {subtitle}
              </Text>
            )}
          </Stack>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      </Stack>
      {children}
    </Stack>
  );
}

/** Puts the focus on the title after a change of page, so that a screen reader says where they are. */
function useFocusAfterNavigation() {
  const heading = useRef<HTMLHeadingElement>(null);
  const { pathname, key } = useLocation();
  useEffect(() => {
    // The router names the first page of a visit "default".
    if (key !== "default") heading.current?.focus({ preventScroll: true });
    // Only another page is a navigation: filters change the search part alone.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [pathname]);
  return heading;
}
