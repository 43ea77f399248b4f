// Objects whose names fit.
import { Text } from "@mantine/core";
import type { Hit } from "../../api/types";
import { ObjectLink } from "../../components/ObjectLink";
import { Panel } from "../../components/Panel";
import classes from "./addresses.module.css";

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
              {detail}
            </Text>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
