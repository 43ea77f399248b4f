// The pages, one click away.
import {
  IconActivity,
  IconCalculator,
  IconGridDots,
  IconLayoutDashboard,
  IconListDetails,
  IconMapPin,
  IconServer2,
  IconTopologyStar3,
} from "@tabler/icons-react";
import { NavLink } from "react-router";
import { useSignedIn } from "../api/session";
import { paths } from "../paths";
import classes from "./Shell.module.css";

export const PAGES = [
  { title: "Overview", to: paths.overview, icon: IconLayoutDashboard },
  { title: "Pools", to: paths.pools, icon: IconGridDots },
  { title: "Allocations", to: paths.allocations, icon: IconListDetails },
  { title: "Tenants", to: paths.tenants, icon: IconTopologyStar3 },
  { title: "Plan", to: paths.plan, icon: IconCalculator },
  { title: "Providers", to: paths.providers, icon: IconServer2 },
  { title: "Addresses", to: paths.addresses, icon: IconMapPin },
  { title: "Activity", to: paths.activity, icon: IconActivity },
];

export function Sidebar() {
  const { version, world } = useSignedIn();
  return (
    <nav className={classes.nav} aria-label="Pages">
      <ul className={classes.links}>
        {PAGES.map(({ title, to, icon: Icon }) => (
          <li key={to}>
            <NavLink to={to} end={to === paths.overview} className={classes.link}>
              <Icon size={17} stroke={1.7} aria-hidden />
              {title}
            </NavLink>
          </li>
        ))}
      </ul>
      <div className={classes.foot}>
        Butler {version}
        {world && <div>One machine, with stand‑ins</div>}
      </div>
    </nav>
  );
}
