// Fits or not, and why. It stays in sight while somebody moves a slider.
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
      <div className={classes.verdictWords}>
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
