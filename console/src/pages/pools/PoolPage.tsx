// One pool: where everything in it is, how it fills up, and what can be done about it.
import { Tabs } from "@mantine/core";
import { Fragment } from "react";
import { useParams, useSearchParams } from "react-router";
import { usePool } from "../../api/pools";
import type { PoolDetail } from "../../api/types";
import { Loaded } from "../../components/Loaded";
import { ObjectLink } from "../../components/ObjectLink";
import { Page } from "../../components/Page";
import { paths } from "../../paths";
import { PoolActions } from "./actions/PoolActions";
import { AllocationsTab } from "./detail/AllocationsTab";
import { Glance } from "./detail/Glance";
import { MapTab } from "./detail/MapTab";
import { SettingsTab } from "./detail/SettingsTab";
import { TimeTab } from "./detail/TimeTab";
import { Notes } from "./Notes";
import classes from "./pools.module.css";
import { PoolState } from "./PoolState";

export function PoolPage() {
  const { namespace = "", name = "" } = useParams();
  const pool = usePool(namespace, name);
  return (
    <Page
      title={name}
      trail={[{ title: "Pools", to: paths.pools }]}
      badge={pool.data && <PoolState pool={pool.data.pool} />}
      subtitle={pool.data && <Subtitle detail={pool.data} />}
      actions={pool.data && <PoolActions detail={pool.data} />}
    >
      <Loaded query={pool}>{(detail) => <Parts detail={detail} />}</Loaded>
    </Page>
  );
}

/** The network, and whose tenants get addresses of it. */
function Subtitle({ detail }: { detail: PoolDetail }) {
  const { cidr, providers } = detail.pool;
  return (
    <>
      <span className="mono">{cidr}</span>
      {providers.length === 0 ? " · no provider hands it out" : " · handed out by "}
      {providers.map((provider, index) => {
        const [namespace = "", name = ""] = provider.split("/");
        return (
          <Fragment key={provider}>
            {index > 0 && ", "}
            <ObjectLink link={{ kind: "provider", namespace, name }} />
          </Fragment>
        );
      })}
    </>
  );
}

const TABS = [
  { value: "map", title: "Addresses", Tab: MapTab },
  { value: "allocations", title: "Allocations", Tab: AllocationsTab },
  { value: "time", title: "Over time", Tab: TimeTab },
  { value: "settings", title: "Settings", Tab: SettingsTab },
];

function Parts({ detail }: { detail: PoolDetail }) {
  const [params, setParams] = useSearchParams();
  const chosen = TABS.find(({ value }) => value === params.get("tab"))?.value ?? "map";
  return (
    <>
      {detail.pool.problem && (
        <Notes health="critical" title="This pool hands out nothing" notes={[detail.pool.problem]} />
      )}
      <Notes health="critical" title="Something is wrong here" notes={detail.wrong} />
      <Notes health="warning" title="The pool's own counters differ from a recount" notes={detail.doubts} />
      <Glance detail={detail} />
      <Tabs
        value={chosen}
        // Filters of one tab mean nothing in another.
        onChange={(tab) => setParams(tab && tab !== "map" ? { tab } : {}, { preventScrollReset: true })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {TABS.map(({ value, title }) => (
            <Tabs.Tab key={value} value={value} className={classes.tab}>
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {TABS.map(({ value, Tab }) => (
          <Tabs.Panel key={value} value={value}>
            <Tab detail={detail} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </>
  );
}
