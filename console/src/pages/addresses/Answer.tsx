// What is known of an address or range: where it lies, who holds it, who had it, who waits for it.
import { List, Stack, Text } from "@mantine/core";
import { useSignedIn } from "../../api/session";
import type { AddressAnswer, Place } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { CopyIcon } from "../../components/CopyText";
import { ObjectLink, TenantLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import { HealthIcon } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { SmallTable } from "../../components/table/SmallTable";
import { count, rangeInWords } from "../../words";
import classes from "./addresses.module.css";
import { Owners } from "./Owners";
import { UsedBy } from "./UsedBy";
import { placeInWords, verdictOf } from "./verdict";

/** Up to so many holders are told one by one; more are in the table of places. */
const FEW = 3;
const MOST = 100;

export function Answer({ answer }: { answer: AddressAnswer }) {
  const { health, sentence } = verdictOf(answer);
  const holders = answer.places.flatMap(({ owners }) => owners);
  const unique = [...new Map(holders.map((owner) => [owner.allocation, owner])).values()];
  return (
    <Stack gap="md">
      <div className={classes.verdict} role="status">
        <HealthIcon health={health} size={22} />
        <Text fw={600} fz="md">
          {sentence}
        </Text>
        <CopyIcon text={rangeInWords(answer.asked.start, answer.asked.end).replace("–", "-")} what="address" />
      </div>
      {unique.length > 0 && unique.length <= FEW && (
        <Panel title={unique.length === 1 ? "Who holds it" : "Who holds them"}>
          <Owners owners={unique} />
        </Panel>
      )}
      {answer.asked.count === 1 && unique[0] && <UsedBy address={answer.asked.start} owner={unique[0]} />}
      {answer.places.length > 0 && <Places places={answer.places} />}
      {answer.knownAs.length > 0 && (
        <Panel title="Also known as">
          <List fz="sm">
            {answer.knownAs.map((name) => (
              <List.Item key={name}>{name}</List.Item>
            ))}
          </List>
        </Panel>
      )}
      {answer.wanted.length > 0 && (
        <Panel title="Who waits for it" hint="Requests for exactly these addresses.">
          <Owners owners={answer.wanted} />
        </Panel>
      )}
      {answer.earlier.length > 0 && (
        <Panel title="Who had it before" hint="As far as it is on record; the latest first.">
          <Owners owners={answer.earlier} />
        </Panel>
      )}
    </Stack>
  );
}

function Places({ places }: { places: Place[] }) {
  const { home } = useSignedIn();
  return (
    <Panel title="Where it lies" flush>
      <SmallTable
        caption="Parts of what was asked"
        columns={["Addresses", { title: "Count", align: "right" }, "Pool", "State", "Holder", "Since"]}
        rows={places
          .slice(0, MOST)
          .map((place) => ({ key: `${place.start} ${place.pool ?? ""}`, cells: cellsOf(place, home) }))}
      />
      {places.length > MOST && (
        <Text fz="xs" c="dimmed" px="sm" pb="sm">
          The first {MOST} of {count(places.length)}. The pool's own page shows all of them.
        </Text>
      )}
    </Panel>
  );
}

function cellsOf(place: Place, home: string) {
  return [
    <AddressText key="range" range={place} />,
    count(place.count),
    place.pool ? <ObjectLink link={{ kind: "pool", namespace: home, name: place.pool }} /> : "–",
    placeInWords(place),
    place.owners.length === 0
      ? "–"
      : place.owners.map(({ tenant, tenantIs, allocation }) => (
          <div key={allocation} className={classes.stacked}>
            {tenantIs === "exists" ? <TenantLink tenant={tenant} /> : <span>{tenant}</span>}
            <ObjectLink link={{ kind: "allocation", namespace: home, name: allocation }} />
          </div>
        )),
    <Time key="since" at={place.owners[0]?.allocatedAt} />,
  ];
}
