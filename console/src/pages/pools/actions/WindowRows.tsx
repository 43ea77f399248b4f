// Which parts of the network tenants may get; none means all but its first and last address.
import { ActionIcon, Button, Text, TextInput } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import classes from "../pools.module.css";

interface Window {
  start: string;
  end: string;
}

export function WindowRows({ windows, onChange }: { windows: Window[]; onChange: (windows: Window[]) => void }) {
  const change = (index: number, values: Partial<Window>) =>
    onChange(windows.map((window, at) => (at === index ? { ...window, ...values } : window)));
  return (
    <fieldset className={classes.rows} style={{ border: "none", margin: 0, padding: 0 }}>
      <legend className="visually-hidden">Windows that are handed out</legend>
      {windows.length === 0 && (
        <Text fz="xs" c="dimmed">
          Handed out is the whole network but its first and last address, unless you name windows.
        </Text>
      )}
      {windows.map((window, index) => (
        <div key={index} className={classes.row}>
          <TextInput
            label={index === 0 ? "First address" : undefined}
            aria-label={`First address of window ${index + 1}`}
            value={window.start}
            onChange={(event) => change(index, { start: event.currentTarget.value })}
            spellCheck={false}
          />
          <TextInput
            label={index === 0 ? "Last address" : undefined}
            aria-label={`Last address of window ${index + 1}`}
            value={window.end}
            onChange={(event) => change(index, { end: event.currentTarget.value })}
            spellCheck={false}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={30}
            aria-label={`Remove window ${index + 1}`}
            onClick={() => onChange(windows.filter((_, at) => at !== index))}
          >
            <IconTrash size={15} />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="subtle"
        leftSection={<IconPlus size={14} />}
        justify="flex-start"
        onClick={() => onChange([...windows, { start: "", end: "" }])}
      >
        Name a window
      </Button>
    </fieldset>
  );
}
