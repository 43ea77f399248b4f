// Figures with their names, as a list of terms.
import type { ReactNode } from "react";
import classes from "./Stat.module.css";

export function Stats({ children }: { children: ReactNode }) {
  return <dl className={classes.stats}>{children}</dl>;
}

interface StatProps {
  label: string;
  value: ReactNode;
  hint?: ReactNode;
}

export function Stat({ label, value, hint }: StatProps) {
  return (
    <div className={classes.stat}>
      <dt className={classes.label}>{label}</dt>
      <dd className={classes.value}>
        {value}
        {hint != null && <div className={classes.hint}>{hint}</div>}
      </dd>
    </div>
  );
}
