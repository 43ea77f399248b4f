// How the pool came to be as full as it is, and when it will be full if things go on like this.
import { Table, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useForecast, useHistory } from "../../../api/pools";
import type { History, PoolDetail } from "../../../api/types";
import { AddressText } from "../../../components/AddressText";
import { EmptyState } from "../../../components/EmptyState";
import { LinesSkeleton, Loaded } from "../../../components/Loaded";
import { TenantLink } from "../../../components/ObjectLink";
import { Panel } from "../../../components/Panel";
import { Time } from "../../../components/Time";
import { count, typeInWords } from "../../../words";
import classes from "../pools.module.css";
import { ForecastBands } from "./ForecastBands";

// The plotting library is large, and needed nowhere else.
const HistoryPlot = lazy(async () => ({ default: (await import("./HistoryPlot")).HistoryPlot }));

const CHANGES = 30;

export function TimeTab({ detail }: { detail: PoolDetail }) {
  const { namespace, name } = detail.pool;
  const history = useHistory(namespace, name);
  const forecast = useForecast(namespace, name);
  return (
    <div className={classes.stack}>
      <Panel title="Addresses held over time" hint={history.data?.note}>
        <Loaded query={history} skeleton={<LinesSkeleton lines={8} />}>
          {(known) => (
            <Suspense fallback={<LinesSkeleton lines={8} />}>
              <HistoryPlot history={known} tiers={detail.tiers} />
            </Suspense>
          )}
        </Loaded>
      </Panel>
      <div className={classes.columns}>
        <Panel title="Forecast" hint="From the pace of the record, played forward many times">
          <Loaded query={forecast}>{(foretold) => <ForecastBands forecast={foretold} />}</Loaded>
        </Panel>
        <Panel title="Changes" hint={`The last ${CHANGES}`}>
          <Loaded query={history}>{({ changes }) => <Changes changes={changes.slice(0, CHANGES)} />}</Loaded>
        </Panel>
      </div>
    </div>
  );
}

function Changes({ changes }: { changes: History["changes"] }) {
  if (changes.length === 0) return <EmptyState title="Nothing was granted or released yet" />;
  return (
    <Table.ScrollContainer minWidth={420} type="native" mah={420}>
      <Table verticalSpacing={4} horizontalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>When</Table.Th>
            <Table.Th>What</Table.Th>
            <Table.Th>Addresses</Table.Th>
            <Table.Th>Tenant</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {changes.map((change) => (
            <Table.Tr key={`${change.at} ${change.action} ${change.allocation}`}>
              <Table.Td>
                <Time at={change.at} />
              </Table.Td>
              <Table.Td>
                {change.action} {count(change.range.count)}
                <Text c="dimmed" fz="xs" style={{ whiteSpace: "nowrap" }}>
                  for {typeInWords(change.type)}
                </Text>
              </Table.Td>
              <Table.Td>
                <AddressText range={change.range} />
              </Table.Td>
              <Table.Td>
                <TenantLink tenant={change.tenant} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
