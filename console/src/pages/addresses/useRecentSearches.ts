// The last searches, kept in this browser only, until the session ends.
import { useLocalStorage } from "@mantine/hooks";
import { useCallback } from "react";
import { RECENT_SEARCHES } from "../../storage";

const MOST = 10;

export function useRecentSearches() {
  const [searches, setSearches, clear] = useLocalStorage<string[]>({
    key: RECENT_SEARCHES,
    defaultValue: [],
    getInitialValueInEffect: false,
  });
  const remember = useCallback((text: string) => setSearches((before) => withSearch(before, text)), [setSearches]);
  return { searches, remember, clear };
}

/** The newest first, each once. */
export function withSearch(searches: string[], text: string): string[] {
  return [text, ...searches.filter((search) => search !== text)].slice(0, MOST);
}
