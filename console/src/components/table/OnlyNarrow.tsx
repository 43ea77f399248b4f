// What a cell tells on a phone in place of columns that are left out there.
import type { ReactNode } from "react";
import classes from "./DataTable.module.css";

export function OnlyNarrow({ children }: { children: ReactNode }) {
  return <div className={classes.onlyNarrow}>{children}</div>;
}
