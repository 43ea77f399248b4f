// Tenants by where they stand.
import { Anchor } from "@mantine/core";
import { Link } from "react-router";
import type { Overview } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { PhaseBadge } from "../../components/StatusBadge";
import { paths } from "../../paths";
import { count } from "../../words";
import classes from "./overview.module.css";

export function TenantPhases({ phases }: { phases: Overview["phases"] }) {
  const most = Math.max(...phases.map((phase) => phase.count), 0);
  if (most === 0) return <EmptyState title="No tenants yet" />;
  return (
    <table className={classes.phases}>
      <caption className="visually-hidden">Tenants by phase</caption>
      <tbody>
        {phases.map((phase) => (
          <tr key={phase.phase}>
            <th scope="row">
              <Anchor
                component={Link}
                to={`${paths.tenants}?phase=${encodeURIComponent(phase.phase)}`}
                underline="hover"
              >
                <PhaseBadge phase={phase.phase} plain />
              </Anchor>
            </th>
            <td className={classes.phaseCount}>{count(phase.count)}</td>
            <td aria-hidden>
              <div className={classes.phaseBar} style={{ width: `${(100 * phase.count) / most}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
