// Who is signed in, and the way out.
import { ActionIcon, Menu, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconDevices, IconLogout, IconUser } from "@tabler/icons-react";
import { Link } from "react-router";
import { asProblem } from "../api/problem";
import { useLogout, useSignedIn } from "../api/session";
import { Time } from "../components/Time";
import { paths } from "../paths";

export const VIA: Record<string, string> = {
  link: "with a one-time link",
  password: "with a password",
  oidc: "through the identity provider",
};

export function UserMenu() {
  const me = useSignedIn();
  const logout = useLogout();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Signed in as ${me.user}`}>
          <IconUser size={17} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text fw={600} fz="sm" c="var(--mantine-color-text)" style={{ overflowWrap: "anywhere" }}>
            {me.user}
          </Text>
          <Text fz="xs">
            Signed in {VIA[me.via]} <Time at={me.since} />
          </Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item component={Link} to={paths.sessions} leftSection={<IconDevices size={15} />}>
          Your sessions
        </Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={15} />}
          onClick={() =>
            logout.mutate(undefined, {
              onError: (error) =>
                notifications.show({
                  color: "red",
                  title: "You are still signed in",
                  message: asProblem(error).message,
                }),
            })
          }
        >
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
