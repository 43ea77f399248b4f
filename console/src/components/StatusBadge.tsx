// A state as icon and word; the colour only says it once more.
import {
  IconAlertTriangle,
  IconCircleCheck,
  IconCircleDashed,
  IconExclamationCircle,
  IconHelpCircle,
  IconInfoCircle,
} from "@tabler/icons-react";
import classes from "./StatusBadge.module.css";

export type Health = "ok" | "warning" | "critical" | "unknown" | "info" | "working";

const ICONS = {
  ok: IconCircleCheck,
  warning: IconAlertTriangle,
  critical: IconExclamationCircle,
  unknown: IconHelpCircle,
  info: IconInfoCircle,
  working: IconCircleDashed,
};

interface StatusBadgeProps {
  health: Health;
  children: string;
  /** Without the surface around it, for dense tables. */
  plain?: boolean;
}

export function StatusBadge({ health, children, plain = false }: StatusBadgeProps) {
  return (
    <span className={plain ? classes.plain : classes.badge} data-health={health}>
      <HealthIcon health={health} size={14} />
      {children}
    </span>
  );
}

export function HealthIcon({ health, size = 16 }: { health: Health; size?: number }) {
  const Icon = ICONS[health];
  return <Icon size={size} stroke={1.9} className={classes.icon} data-health={health} aria-hidden />;
}

const PHASES: Record<string, Health> = {
  Ready: "ok",
  Allocated: "ok",
  Released: "unknown",
  Failed: "critical",
  Pending: "working",
  Provisioning: "working",
  Installing: "working",
  Updating: "working",
  Deleting: "working",
};

/** The phase of a tenant or an allocation. */
export function PhaseBadge({ phase, plain }: { phase: string; plain?: boolean }) {
  return (
    <StatusBadge health={PHASES[phase] ?? "info"} plain={plain}>
      {phase || "not known"}
    </StatusBadge>
  );
}
