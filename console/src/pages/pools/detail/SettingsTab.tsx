// How the pool is set up, what its conditions say, and what happened to it.
import { Table, Text } from "@mantine/core";
import { useActivity } from "../../../api/estate";
import type { PoolDetail } from "../../../api/types";
import { ActivityFeed } from "../../../components/ActivityFeed";
import { ConditionsTable } from "../../../components/ConditionsTable";
import { Loaded } from "../../../components/Loaded";
import { Panel } from "../../../components/Panel";
import { Stat, Stats } from "../../../components/Stat";
import { count, rangeInWords } from "../../../words";
import classes from "../pools.module.css";

const EVENTS = 20;

export function SettingsTab({ detail }: { detail: PoolDetail }) {
  const { namespace, name } = detail.pool;
  const activity = useActivity({ kind: "pool", namespace, name, limit: EVENTS });
  return (
    <div className={classes.columns}>
      <div className={classes.stack}>
        <Panel title="What is handed out" hint="Windows of the network, less what is reserved">
          <Blocks
            caption="Windows"
            rows={detail.windows.map(({ start, end, count }) => ({ start, end, count, about: "window" }))}
          />
          <Stats>
            <Stat
              label="Nodes per tenant"
              value={count(detail.defaults.nodesPerTenant)}
              hint="unless a tenant asks for more"
            />
            <Stat label="Load balancers per tenant" value={count(detail.defaults.lbPoolPerTenant)} />
          </Stats>
        </Panel>
        <Panel title="Reserved" hint="Never handed out">
          {detail.reserved.length === 0 ? (
            <Text c="dimmed">Nothing is reserved.</Text>
          ) : (
            <Blocks
              caption="Reserved blocks"
              rows={detail.reserved.map(({ start, end, count, description, cidr }) => ({
                start,
                end,
                count,
                about: description || cidr,
              }))}
            />
          )}
        </Panel>
        <Panel title="Conditions" flush>
          <ConditionsTable conditions={detail.conditions} />
        </Panel>
      </div>
      <Panel title="What happened">
        <Loaded query={activity}>{({ items }) => <ActivityFeed items={items} ofOneObject />}</Loaded>
      </Panel>
    </div>
  );
}

interface Row {
  start: string;
  end: string;
  count: number;
  about: string;
}

function Blocks({ caption, rows }: { caption: string; rows: Row[] }) {
  return (
    <Table verticalSpacing={4} horizontalSpacing="xs" mb="md">
      <caption className="visually-hidden">{caption}</caption>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={row.start}>
            <Table.Td className="mono" style={{ whiteSpace: "normal" }}>
              {rangeInWords(row.start, row.end)}
            </Table.Td>
            <Table.Td ta="right">{count(row.count)}</Table.Td>
            <Table.Td>{row.about}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
