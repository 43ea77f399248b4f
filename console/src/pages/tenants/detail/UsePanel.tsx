// What the tenant's Services make of its load-balancer addresses, as the controller last saw it.
import { Text } from "@mantine/core";
import type { TenantDetail } from "../../../api/types";
import { Panel } from "../../../components/Panel";
import { StatusBadge } from "../../../components/StatusBadge";
import { count, plural } from "../../../words";
import classes from "./detail.module.css";

interface UsePanelProps {
  use: NonNullable<TenantDetail["loadBalancers"]>;
  elastic: boolean;
}

export function UsePanel({ use: { held, inUse, idle, waiting, most }, elastic }: UsePanelProps) {
  return (
    <Panel
      title="Load-balancer addresses"
      hint={
        elastic
          ? "They follow demand: more come when Services wait, and idle ones go back after a while."
          : "They stay as many as they are until a user changes the tenant."
      }
    >
      <div className={classes.meter} aria-hidden>
        {inUse > 0 && <div data-part="used" style={{ flexGrow: inUse }} />}
        {idle > 0 && <div data-part="idle" style={{ flexGrow: idle }} />}
      </div>
      <Text fz="sm" component="p" m={0} role="status">
        <strong>{count(held)} held:</strong> <span className={classes.swatch} data-part="used" aria-hidden />
        {count(inUse)} in use, <span className={classes.swatch} data-part="idle" aria-hidden />
        {count(idle)} idle{most !== null && `; ${count(most)} at most`}
      </Text>
      {waiting > 0 && (
        <StatusBadge health="warning">{`${plural(waiting, "Service waits", "Services wait")} for an address`}</StatusBadge>
      )}
    </Panel>
  );
}
