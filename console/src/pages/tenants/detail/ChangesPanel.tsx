// When the tenant's addresses grew and shrank.
import { Button, Text } from "@mantine/core";
import { IconMinus, IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import type { TenantDetail } from "../../../api/types";
import { AddressText } from "../../../components/AddressText";
import { EmptyState } from "../../../components/EmptyState";
import { Panel } from "../../../components/Panel";
import { Time } from "../../../components/Time";
import { plural, typeInWords } from "../../../words";
import classes from "./detail.module.css";

const FIRST = 8;

export function ChangesPanel({ changes }: { changes: TenantDetail["changes"] }) {
  const [all, setAll] = useState(false);
  return (
    <Panel title="Growth and shrinking" hint="What was granted and went back, as far as it is on record.">
      {changes.length === 0 ? (
        <EmptyState title="Nothing was granted yet" />
      ) : (
        <ol className={classes.story}>
          {(all ? changes : changes.slice(0, FIRST)).map((change) => (
            <li key={`${change.at} ${change.allocation} ${change.action}`} className={classes.step}>
              {change.action === "granted" ? (
                <IconPlus size={17} color="var(--ok)" aria-hidden />
              ) : (
                <IconMinus size={17} color="var(--neutral)" aria-hidden />
              )}
              <div className={classes.stepWords}>
                <Text fz="sm">
                  {change.action === "granted" ? "Granted" : "Went back"}:{" "}
                  {plural(change.range.count, "address", "addresses")} for {typeInWords(change.type)}
                  {change.growth && " (growth)"}
                </Text>
                <Text fz="xs" c="dimmed">
                  <AddressText range={change.range} /> · {change.allocation}
                </Text>
              </div>
              <Text fz="xs" c="dimmed" component="div">
                <Time at={change.at} />
              </Text>
            </li>
          ))}
        </ol>
      )}
      {changes.length > FIRST && (
        <Button variant="subtle" mt="xs" onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? "Show fewer" : `Show all ${changes.length}`}
        </Button>
      )}
    </Panel>
  );
}
