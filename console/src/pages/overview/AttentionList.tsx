// What an administrator should look at.
import { Button, Text } from "@mantine/core";
import { useState } from "react";
import type { Attention } from "../../api/types";
import { ObjectLink } from "../../components/ObjectLink";
import { HealthIcon } from "../../components/StatusBadge";
import { count } from "../../words";
import classes from "./overview.module.css";

const FIRST = 6;
const SAYS = { critical: "Critical", warning: "Warning", info: "Note" };

export function AttentionList({ items }: { items: Attention[] }) {
  const [all, setAll] = useState(false);
  if (items.length === 0) {
    return (
      <div className={classes.attention}>
        <HealthIcon health="ok" size={17} />
        <span>Nothing: pools have room, tenants are up, and no request waits.</span>
      </div>
    );
  }
  const shown = all ? items : items.slice(0, FIRST);
  return (
    <>
      <ul className={classes.list}>
        {shown.map((item) => (
          <li
            key={`${item.link.kind}/${item.link.namespace}/${item.link.name}/${item.title}`}
            className={classes.attention}
          >
            <HealthIcon health={item.severity} size={17} />
            <div className={classes.words}>
              <span className="visually-hidden">{SAYS[item.severity]}: </span>
              <ObjectLink link={item.link}>{item.title}</ObjectLink>
              <Text fz="sm" c="dimmed">
                {item.detail}
              </Text>
            </div>
          </li>
        ))}
      </ul>
      {items.length > FIRST && (
        <Button variant="subtle" mt={4} onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? "Show the worst only" : `Show all ${count(items.length)}`}
        </Button>
      )}
    </>
  );
}
