// What happened: events of the controllers, and what people did.
import { Affix, Button, Group } from "@mantine/core";
import { useWindowScroll } from "@mantine/hooks";
import { IconArrowUp } from "@tabler/icons-react";
import { useActivity } from "../../api/estate";
import { ActivityFeed } from "../../components/ActivityFeed";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { FilterBox } from "../../components/table/FilterBox";
import { FilterSelect } from "../../components/table/FilterSelect";
import { NothingFits } from "../../components/table/NothingFits";
import { Pager } from "../../components/table/Pager";
import { useListState, type ListState } from "../../components/table/useListState";
import { useHeldBack } from "./useHeldBack";

const LIMIT = 50;
const FILTERS = ["kind", "severity", "q"] as const;
const SCROLLED = 160;

const KINDS = [
  { value: "tenant", label: "Tenants" },
  { value: "pool", label: "Pools" },
  { value: "allocation", label: "Allocations" },
  { value: "provider", label: "Providers" },
];

export function ActivityPage() {
  const list = useListState("");
  const filters = list.filters(FILTERS);
  const activity = useActivity({ ...filters, limit: LIMIT, cursor: list.cursor });
  const [{ y }, scrollTo] = useWindowScroll();
  const { shown, fresh } = useHeldBack(
    activity.data?.items,
    list.page === 0 && y > SCROLLED,
    JSON.stringify([filters, list.cursor]),
  );
  return (
    <Page
      title="Activity"
      subtitle="What the controllers say and what people did, newest first. Kubernetes forgets events after an hour or so."
    >
      <Panel title="What happened" actions={<Filters list={list} />}>
        <Loaded query={activity}>
          {(page) => (
            <>
              {shown.length === 0 && list.has(FILTERS) ? (
                <NothingFits list={list} filters={FILTERS} title="Nothing like that happened" />
              ) : (
                <ActivityFeed items={shown} />
              )}
              {page.items.length > 0 && <Pager page={page} list={list} limit={LIMIT} />}
            </>
          )}
        </Loaded>
      </Panel>
      <div role="status" className="visually-hidden">
        {fresh > 0 ? `${fresh} new` : ""}
      </div>
      {fresh > 0 && (
        <Affix position={{ top: 60, left: 0, right: 0 }} zIndex={90} style={{ pointerEvents: "none" }}>
          <Group justify="center">
            <Button
              radius="xl"
              leftSection={<IconArrowUp size={15} />}
              style={{ pointerEvents: "auto" }}
              onClick={() => scrollTo({ y: 0 })}
            >
              {fresh} new
            </Button>
          </Group>
        </Affix>
      )}
    </Page>
  );
}

function Filters({ list }: { list: ListState }) {
  return (
    <Group gap="xs">
      <FilterBox list={list} label="Filter by text or person" />
      <FilterSelect list={list} name="kind" label="About anything" options={KINDS} />
      <FilterSelect
        list={list}
        name="severity"
        label="Any severity"
        options={[
          { value: "Warning", label: "Warnings" },
          { value: "Normal", label: "Normal" },
        ]}
      />
    </Group>
  );
}
