// Allocations with some addresses: now, before, or perhaps one day.
import { Text } from "@mantine/core";
import { useSignedIn } from "../../api/session";
import type { Owner } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { ObjectLink, TenantLink } from "../../components/ObjectLink";
import { Time } from "../../components/Time";
import { typeInWords } from "../../words";
import classes from "./addresses.module.css";

const STANDING = {
  exists: "",
  gone: "gone",
  replaced: "gone, another one has its name",
  unseen: "never seen by Butler",
};

export function Owners({ owners }: { owners: Owner[] }) {
  const { home } = useSignedIn();
  return (
    <ul className={classes.owners}>
      {owners.map((owner) => (
        <li key={owner.allocation} className={classes.owner}>
          <Text fz="sm">
            <strong>{owner.tenantIs === "exists" ? <TenantLink tenant={owner.tenant} /> : owner.tenant}</strong>
            {owner.tenantIs !== "exists" && ` (${STANDING[owner.tenantIs]})`}, for {typeInWords(owner.type)}
            {owner.role === "growth" && " (growth)"}: <AddressText range={owner.range} />
          </Text>
          <Text fz="xs" c="dimmed" component="div">
            <ObjectLink link={{ kind: "allocation", namespace: home, name: owner.allocation }} /> from{" "}
            <ObjectLink link={{ kind: "pool", namespace: home, name: owner.pool }} /> · {owner.phase}
            <Moment words="granted" at={owner.allocatedAt} />
            <Moment words="idle since" at={owner.idleSince} />
            <Moment words="going back since" at={owner.drainingSince} />
            <Moment words="released" at={owner.releasedAt} />
          </Text>
          {owner.why && <Text fz="xs">{owner.why}</Text>}
        </li>
      ))}
    </ul>
  );
}

function Moment({ words, at }: { words: string; at: string | null }) {
  if (!at) return null;
  return (
    <>
      {" · "}
      {words} <Time at={at} />
    </>
  );
}
