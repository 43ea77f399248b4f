// The estate at a glance: what there is, what needs an administrator, how full the pools are, what happened last.
import { Anchor, Button, SimpleGrid, Text } from "@mantine/core";
import { Link } from "react-router";
import { useActivity, useOverview } from "../../api/estate";
import { usePools } from "../../api/pools";
import { useSignedIn } from "../../api/session";
import type { Overview } from "../../api/types";
import { ActivityFeed } from "../../components/ActivityFeed";
import { EmptyState } from "../../components/EmptyState";
import { LinesSkeleton, Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { paths } from "../../paths";
import { plural } from "../../words";
import { AttentionList } from "./AttentionList";
import classes from "./overview.module.css";
import { PoolTiles } from "./PoolTiles";
import { TenantPhases } from "./TenantPhases";
import { TotalsStrip } from "./TotalsStrip";

const TILES = 24;
const EVENTS = 7;

export function OverviewPage() {
  const overview = useOverview();
  return (
    <Page title="Overview">
      <Loaded query={overview} skeleton={<LinesSkeleton lines={3} height={28} />}>
        {(estate) => (
          <>
            <TotalsStrip totals={estate.totals} />
            <HiddenNote hidden={estate.hidden} />
          </>
        )}
      </Loaded>
      <div className={classes.columns}>
        <div className={classes.column}>
          <Panel title="Needs attention">
            <Loaded query={overview}>{({ attention }) => <AttentionList items={attention} />}</Loaded>
          </Panel>
          <PoolsPanel />
        </div>
        <div className={classes.column}>
          <Panel title="Tenants" actions={<More to={paths.tenants} what="all tenants" />}>
            <Loaded query={overview}>{({ phases }) => <TenantPhases phases={phases} />}</Loaded>
          </Panel>
          <LatestPanel />
        </div>
      </div>
    </Page>
  );
}

function HiddenNote({ hidden }: { hidden: Overview["hidden"] }) {
  if (hidden.kinds.length === 0) return null;
  return (
    <Text fz="sm" c="dimmed">
      You may not read {hidden.kinds.join(", ")}, so what is here is not all there is.
    </Text>
  );
}

function PoolsPanel() {
  const pools = usePools({ limit: TILES, sort: "-percent" });
  const me = useSignedIn();
  return (
    <Panel
      title="Pools"
      hint="Each network from its first to its last address; the fullest first"
      actions={<More to={paths.pools} what="all pools" />}
    >
      <Loaded
        query={pools}
        skeleton={
          <SimpleGrid cols={3}>
            {[1, 2, 3].map((key) => (
              <LinesSkeleton key={key} />
            ))}
          </SimpleGrid>
        }
      >
        {({ items, total }) =>
          items.length === 0 ? (
            <EmptyState
              title="No pools yet"
              action={
                me.permissions.createPools && (
                  <Button component={Link} to={paths.newPool}>
                    Create a pool
                  </Button>
                )
              }
            >
              A pool is a network from which tenants get their addresses.
            </EmptyState>
          ) : (
            <>
              <PoolTiles pools={items} />
              {total > items.length && (
                <Text fz="xs" c="dimmed" mt="sm">
                  And {plural(total - items.length, "pool")} that {total - items.length === 1 ? "is" : "are"} less full.
                </Text>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

function LatestPanel() {
  const activity = useActivity({ limit: EVENTS });
  return (
    <Panel title="Latest activity" actions={<More to={paths.activity} what="all activity" />}>
      <Loaded query={activity}>{({ items }) => <ActivityFeed items={items} />}</Loaded>
    </Panel>
  );
}

function More({ to, what }: { to: string; what: string }) {
  return (
    <Anchor component={Link} to={to} fz="xs">
      Show {what}
    </Anchor>
  );
}
