// Fits or not, and why. It stays in sight while a person moves a slider.
import { Text } from "@mantine/core";
import type { Plan } from "../../api/types";
import { HealthIcon } from "../../components/StatusBadge";
import classes from "./plan.module.css";
import { verdictOf } from "./inWords";

export function Verdict({ plan }: { plan: Plan }) {
  const { title, lines } = verdictOf(plan);
  return (
    <div className={classes.verdict} data-fits={plan.fits ? "yes" : "no"} role="status" aria-live="polite">
      <HealthIcon health={plan.fits ? "ok" : "critical"} size={22} />
      {/* Scrolls on a small screen, so it has to be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={classes.verdictWords} tabIndex={0} role="group" aria-label="Outcome">
        <Text fw={600} fz="md">
          {title}
        </Text>
        {lines.map((line) => (
          <Text key={line} fz="sm">
            {line}
          </Text>
        ))}
      </div>
    </div>
  );
}
