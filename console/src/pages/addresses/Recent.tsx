import { Button, Group, UnstyledButton } from "@mantine/core";
import { EmptyState } from "../../components/EmptyState";
import { Panel } from "../../components/Panel";
import { IconMapPin } from "@tabler/icons-react";
import classes from "./addresses.module.css";

interface RecentProps {
  searches: string[];
  onAsk: (text: string) => void;
  onClear: () => void;
}

export function Recent({ searches, onAsk, onClear }: RecentProps) {
  if (searches.length === 0) {
    return (
      <Panel title="Recent searches">
        <EmptyState title="Ask for any address" icon={IconMapPin}>
          Who holds it, from which pool and since when, who had it before, and who waits for it. Searches are kept in
          this browser only.
        </EmptyState>
      </Panel>
    );
  }
  return (
    <Panel
      title="Recent searches"
      hint="Kept in this browser only."
      actions={
        <Button variant="subtle" onClick={onClear}>
          Forget them
        </Button>
      }
    >
      <Group gap="xs" component="ul" className={classes.recent}>
        {searches.map((search) => (
          <li key={search}>
            <UnstyledButton className={classes.chip} onClick={() => onAsk(search)}>
              {search}
            </UnstyledButton>
          </li>
        ))}
      </Group>
    </Panel>
  );
}
