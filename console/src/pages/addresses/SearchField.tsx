// Where the address is typed. Answers come while typing; Enter keeps the search, the down arrow goes into the answers.
import { CloseButton, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState, type Ref } from "react";

const PAUSE_MS = 200;

interface SearchFieldProps {
  ref: Ref<HTMLInputElement>;
  /** What is asked now; it may come from a link. */
  text: string;
  onAsk: (text: string) => void;
  onEnter: (text: string) => void;
  onDown: () => void;
}

export function SearchField({ ref, text, onAsk, onEnter, onDown }: SearchFieldProps) {
  const [typed, setTyped] = useState(text);
  const [asked, setAsked] = useState(text);
  // The user followed a link to another search.
  if (asked !== text) {
    setAsked(text);
    if (typed.trim() !== text) setTyped(text);
  }
  const askLater = useDebouncedCallback((next: string) => {
    setAsked(next);
    onAsk(next);
  }, PAUSE_MS);
  const change = (next: string) => {
    setTyped(next);
    askLater(next.trim());
  };
  return (
    <TextInput
      ref={ref}
      size="md"
      label="Address, range, network or name"
      description="Such as 10.40.0.7, 10.40.0.7-10.40.0.20, 10.40.0.0/24 or payments. Enter keeps it among the recent ones."
      value={typed}
      onChange={(event) => change(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && typed.trim()) onEnter(typed.trim());
        if (event.key === "ArrowDown") {
          event.preventDefault();
          onDown();
        }
      }}
      leftSection={<IconSearch size={17} />}
      rightSection={typed && <CloseButton size="sm" aria-label="Clear the search" onClick={() => change("")} />}
      type="search"
      autoComplete="off"
      autoCapitalize="off"
      spellCheck={false}
      maw="44rem"
    />
  );
}
