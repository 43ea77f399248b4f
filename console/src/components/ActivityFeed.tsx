// What happened, newest first.
import { Text } from "@mantine/core";
import { IconUser } from "@tabler/icons-react";
import type { ActivityItem, Link } from "../api/types";
import classes from "./ActivityFeed.module.css";
import { EmptyState } from "./EmptyState";
import { ObjectLink } from "./ObjectLink";
import { HealthIcon } from "./StatusBadge";
import { Time } from "./Time";

interface ActivityFeedProps {
  items: ActivityItem[];
  /** Leaves out what the entries are about, on the page of that object. */
  ofOneObject?: boolean;
}

export function ActivityFeed({ items, ofOneObject = false }: ActivityFeedProps) {
  if (items.length === 0) return <EmptyState title="Nothing happened yet">Events appear here as they come.</EmptyState>;
  return (
    <ol className={classes.feed}>
      {items.map((item) => (
        <li key={item.id} className={classes.entry}>
          {item.actor && item.severity === "Normal" ? (
            <IconUser size={15} stroke={1.9} color="var(--info)" aria-hidden />
          ) : (
            <HealthIcon health={item.severity === "Warning" ? "warning" : "info"} size={15} />
          )}
          <div className={classes.words}>
            <span className="visually-hidden">{item.severity === "Warning" ? "Warning: " : ""}</span>
            {!ofOneObject && item.about && (
              <>
                <ObjectLink link={item.about}>{nameOf(item.about)}</ObjectLink>:{" "}
              </>
            )}
            <span>{item.message || item.reason}</span>
            <Text fz="xs" c="dimmed" component="div">
              <Time at={item.at} /> · {item.reason}
              {item.actor ? ` · ${item.actor}` : item.source ? ` · ${item.source}` : ""}
              {item.count > 1 && ` · ${item.count} times`}
            </Text>
          </div>
        </li>
      ))}
    </ol>
  );
}

/** Tenants of several teams may have one name. */
function nameOf({ kind, namespace, name }: Link): string {
  return kind === "tenant" ? `${namespace}/${name}` : name;
}
