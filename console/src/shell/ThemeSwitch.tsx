import { ActionIcon, Menu, useMantineColorScheme, type MantineColorScheme } from "@mantine/core";
import { IconCheck, IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";

const THEMES: { value: MantineColorScheme; title: string; icon: typeof IconSun }[] = [
  { value: "light", title: "Light", icon: IconSun },
  { value: "dark", title: "Dark", icon: IconMoon },
  { value: "auto", title: "As the system", icon: IconDeviceDesktop },
];

export function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const current = THEMES.find(({ value }) => value === colorScheme) ?? {
    title: "As the system",
    icon: IconDeviceDesktop,
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Theme: ${current.title}`}>
          <current.icon size={17} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {THEMES.map(({ value, title, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={15} stroke={1.7} />}
            rightSection={value === colorScheme && <IconCheck size={14} aria-label="chosen" />}
            onClick={() => setColorScheme(value)}
          >
            {title}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
