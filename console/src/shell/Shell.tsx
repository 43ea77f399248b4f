// What is around every page: skip link, sidebar, top bar, and the live stream that keeps pages up to date.
import { AppShell, Burger, Group } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Suspense, useEffect } from "react";
import { Outlet, ScrollRestoration, useLocation } from "react-router";
import { useLiveStream } from "../api/live/useLive";
import { LinesSkeleton } from "../components/Loaded";
import { CommandPalette, PaletteButton } from "./CommandPalette";
import { LiveIndicator } from "./LiveIndicator";
import { Logo } from "./Logo";
import classes from "./Shell.module.css";
import { Sidebar } from "./Sidebar";
import { ThemeSwitch } from "./ThemeSwitch";
import { UserMenu } from "./UserMenu";

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const { pathname } = useLocation();
  useLiveStream();
  useEffect(close, [pathname, close]);
  return (
    <>
      <a href="#main" className={classes.skip}>
        Skip to the page
      </a>
      <AppShell
        header={{ height: 48 }}
        navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !opened } }}
        padding={0}
      >
        <AppShell.Header className={classes.header}>
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? "Close the menu" : "Open the menu"}
              aria-expanded={opened}
            />
            <Logo />
          </Group>
          <PaletteButton />
          <Group gap={6} wrap="nowrap">
            <LiveIndicator />
            <ThemeSwitch />
            <UserMenu />
          </Group>
        </AppShell.Header>
        <AppShell.Navbar className={classes.navbar}>
          <Sidebar />
        </AppShell.Navbar>
        <AppShell.Main id="main" tabIndex={-1}>
          <Suspense fallback={<LinesSkeleton lines={8} />}>
            <Outlet />
          </Suspense>
        </AppShell.Main>
      </AppShell>
      <CommandPalette />
      <ScrollRestoration />
    </>
  );
}
