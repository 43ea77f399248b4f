// Narrows a list down by text; waits until the typing pauses.
import { CloseButton, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import type { ListState } from "./useListState";

const PAUSE_MS = 200;

export function FilterBox({ list, label }: { list: ListState; label: string }) {
  const [text, setText] = useState(list.get("q"));
  const send = useDebouncedCallback((q: string) => list.set({ q }), PAUSE_MS);
  const change = (next: string) => {
    setText(next);
    send(next.trim());
  };
  return (
    <TextInput
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={(event) => change(event.currentTarget.value)}
      leftSection={<IconSearch size={14} />}
      rightSection={text && <CloseButton size="xs" aria-label="Clear the filter" onClick={() => change("")} />}
      w="16rem"
      maw="100%"
      autoComplete="off"
      spellCheck={false}
    />
  );
}
