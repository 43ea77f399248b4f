// Objects whose names fit.
import { Text } from "@mantine/core";
import type { Hit, Link } from "../../api/types";
import { ObjectLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import classes from "./addresses.module.css";

const KINDS: Record<Link["kind"], string> = { pool: "Pool", tenant: "Tenant", allocation: "Allocation", provider: "Provider" };

export function Hits({ hits }: { hits: Hit[] }) {
  return (
    <Panel title="Names" hint="The best come first.">
      <ul className={classes.owners}>
        {hits.map(({ link, title, detail }) => (
          <li key={`${link.kind} ${link.namespace} ${link.name}`} className={classes.owner}>
            <Text fz="sm">
              <ObjectLink link={link}>{title}</ObjectLink>
            </Text>
            <Text fz="xs" c="dimmed">
              {KINDS[link.kind]}
              {detail && ` · ${detail}`}
            </Text>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
