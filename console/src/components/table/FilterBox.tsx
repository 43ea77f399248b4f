// Narrows a list down by text; waits until the typing pauses.
import { CloseButton, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import type { ListState } from "./useListState";

const PAUSE_MS = 200;

export function FilterBox({ list, label }: { list: ListState; label: string }) {
  const asked = list.get("q");
  const [text, setText] = useState(asked);
  const [seen, setSeen] = useState(asked);
  const [sent, setSent] = useState(asked);
  // Something else changed it: a button that clears, or the way back. What was sent from here comes back later, when
  // more may have been typed already.
  if (seen !== asked) {
    setSeen(asked);
    if (asked !== sent) {
      setSent(asked);
      setText(asked);
    }
  }
  const send = useDebouncedCallback((q: string) => {
    setSent(q);
    list.set({ q });
  }, PAUSE_MS);
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
