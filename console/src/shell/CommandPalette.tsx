// Ctrl-K or Cmd-K: jump to any page, pool, tenant, allocation, provider or address.
import { Kbd, UnstyledButton } from "@mantine/core";
import { useDebouncedValue, useOs } from "@mantine/hooks";
import {
  createSpotlight,
  Spotlight,
  type SpotlightActionData,
  type SpotlightActionGroupData,
} from "@mantine/spotlight";
import {
  IconBoxMultiple,
  IconGridDots,
  IconMapPin,
  IconSearch,
  IconServer2,
  IconTopologyStar3,
  type Icon,
} from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { useSearch } from "../api/estate";
import type { Link } from "../api/types";
import { pathOf, paths } from "../paths";
import classes from "./Shell.module.css";
import { PAGES } from "./Sidebar";

const ICONS: Record<Link["kind"], Icon> = {
  pool: IconGridDots,
  tenant: IconTopologyStar3,
  allocation: IconBoxMultiple,
  provider: IconServer2,
};

const [store, palette] = createSpotlight();

export function PaletteButton() {
  const os = useOs();
  return (
    <UnstyledButton className={classes.palette} onClick={palette.open} aria-keyshortcuts="Control+K Meta+K">
      <IconSearch size={15} aria-hidden />
      <span className={classes.paletteWords}>Search names and addresses</span>
      <Kbd size="xs" className={classes.shortcut}>
        {os === "macos" ? "⌘ K" : "Ctrl K"}
      </Kbd>
    </UnstyledButton>
  );
}

export function CommandPalette() {
  const [text, setText] = useState("");
  const [asked] = useDebouncedValue(text.trim(), 120);
  const search = useSearch(asked);
  const groups = useGroups(
    text.trim(),
    search.isPlaceholderData || asked !== text.trim() ? stillFitting(search.data, text.trim()) : search.data,
  );
  useEffect(selectFirst, [search.data, text]);
  return (
    <Spotlight
      store={store}
      actions={groups}
      query={text}
      onQueryChange={setText}
      // The server has chosen already what fits.
      filter={(_query, actions) => actions}
      shortcut={["mod + K", "/"]}
      scrollable
      maxHeight="min(28rem, 70vh)"
      highlightQuery={false}
      attributes={{ content: { "aria-label": "Search names and addresses" } }}
      nothingFound={search.isFetching ? "Searching …" : `Nothing is called “${text.trim()}”`}
      searchProps={{
        leftSection: <IconSearch size={17} stroke={1.6} />,
        placeholder: "A pool, tenant, allocation, provider, or an address such as 10.40.0.7",
        "aria-label": "Search names and addresses",
      }}
    />
  );
}

type Found = ReturnType<typeof useSearch>["data"];

/** Of the answer to what was typed before: a person who types on and presses Enter must not land at what no longer fits. */
function stillFitting(found: Found, text: string): Found {
  return (
    found && {
      ...found,
      address: null,
      hits: found.hits.filter(({ title }) => title.toLowerCase().includes(text.toLowerCase())),
    }
  );
}

/** Answers come after the typing: the library selects the first entry only while there is none from the server yet. */
function selectFirst(): void {
  const state = store.getState();
  const list = document.getElementById(state.listId);
  if (!list || list.querySelector("[data-selected]")) return;
  list.querySelector("[data-action]")?.setAttribute("data-selected", "true");
  store.setState({ ...state, selected: 0 });
}

function useGroups(text: string, found: Found): SpotlightActionGroupData[] {
  const navigate = useNavigate();
  const action = (id: string, label: string, Icon: Icon, to: string, description?: string): SpotlightActionData => ({
    id,
    label,
    description,
    leftSection: <Icon size={18} stroke={1.6} aria-hidden />,
    onClick: () => void navigate(to),
  });
  const pages = PAGES.filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()));
  const groups: SpotlightActionGroupData[] = [];
  if (text && found?.address) {
    const { start, end } = found.address.asked;
    const title = start === end ? start : `${start}–${end}`;
    groups.push({
      group: "Addresses",
      actions: [action("address", title, IconMapPin, paths.address(text), "Who has it, and what is around it")],
    });
  }
  if (text && found && found.hits.length > 0) {
    groups.push({
      group: "Objects",
      actions: found.hits.map(({ link, title, detail }) =>
        action(`${link.kind}/${link.namespace}/${link.name}`, title, ICONS[link.kind], pathOf(link), detail),
      ),
    });
  }
  if (pages.length > 0) {
    groups.push({ group: "Pages", actions: pages.map(({ title, to, icon }) => action(`page${to}`, title, icon, to)) });
  }
  return groups;
}
