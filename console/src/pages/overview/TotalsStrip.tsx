// What there is, in figures; each leads to its page.
import { Anchor } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { Overview } from "../../api/types";
import { paths } from "../../paths";
import { compact, count, percent, plural } from "../../words";
import classes from "./overview.module.css";

export function TotalsStrip({ totals }: { totals: Overview["totals"] }) {
  const { pools, addresses, allocated, allocations, waiting, tenants, tenantsReady, servicesWaiting, providers } =
    totals;
  const unready = tenants - tenantsReady;
  return (
    <dl className={classes.totals}>
      <Total
        label="Addresses held"
        to={paths.pools}
        figure={percent(addresses > 0 ? (100 * allocated) / addresses : 0)}
        beside={`${compact(allocated)} of ${compact(addresses)}, in ${plural(pools, "pool")}`}
      />
      <Total
        label="Allocations"
        to={paths.pools}
        figure={count(allocations)}
        beside={waiting > 0 ? `${count(waiting)} waiting for addresses` : "none is waiting"}
        worrying={waiting > 0}
      />
      <Total
        label="Tenants"
        to={paths.tenants}
        figure={count(tenants)}
        beside={unready > 0 ? `${count(unready)} not ready` : "all ready"}
        worrying={unready > 0}
      />
      <Total
        label="Services waiting"
        to={paths.tenants}
        figure={count(servicesWaiting)}
        beside={servicesWaiting > 0 ? "have no address yet" : "all have their addresses"}
        worrying={servicesWaiting > 0}
      />
      <Total label="Providers" to={paths.providers} figure={count(providers)} beside="where tenants go" />
    </dl>
  );
}

interface TotalProps {
  label: string;
  to: string;
  figure: string;
  beside: ReactNode;
  worrying?: boolean;
}

function Total({ label, to, figure, beside, worrying = false }: TotalProps) {
  return (
    <div className={classes.total}>
      <dt>
        <Anchor component={Link} to={to} inherit>
          {label}
        </Anchor>
      </dt>
      <dd>
        <div className={classes.figure}>{figure}</div>
        <div className={classes.beside} data-health={worrying ? "warning" : undefined}>
          {beside}
        </div>
      </dd>
    </div>
  );
}
