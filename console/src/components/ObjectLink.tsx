// Links to objects, wherever a text speaks of them.
import { Anchor } from "@mantine/core";
import { Link as RouterLink } from "react-router";
import type { Link } from "../api/types";
import { pathOf, pathOfTenant } from "../paths";

export function ObjectLink({ link, children }: { link: Link; children?: string }) {
  return (
    <Anchor component={RouterLink} to={pathOf(link)} fz="inherit">
      {children ?? link.name}
    </Anchor>
  );
}

/** A tenant that is spelled `namespace/name`. */
export function TenantLink({ tenant }: { tenant: string }) {
  return (
    <Anchor component={RouterLink} to={pathOfTenant(tenant)} fz="inherit">
      {tenant}
    </Anchor>
  );
}
