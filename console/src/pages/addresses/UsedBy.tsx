// Which node or Service has an address, as the tenant that holds it says.
import { Text } from "@mantine/core";
import { parseAddress } from "../../address-space/addresses";
import { useTenantAddresses } from "../../api/tenants";
import type { Owner, Span } from "../../api/types";
import { Loaded } from "../../components/Loaded";
import { Panel } from "../../components/Panel";
import { StatusBadge } from "../../components/StatusBadge";
import { tenantInWords } from "../../words";

export function UsedBy({ address, owner }: { address: string; owner: Owner }) {
  if (owner.tenantIs === "exists") return <AskedTenant address={address} owner={owner} />;
  return (
    <Panel title="Who uses it">
      <Text fz="sm">{tenantInWords(owner.tenantIs)}</Text>
    </Panel>
  );
}

function AskedTenant({ address, owner }: { address: string; owner: Owner }) {
  const [namespace = "", name = ""] = owner.tenant.split("/");
  const addresses = useTenantAddresses(namespace, name);
  return (
    <Panel title="Who uses it" hint={`As ${owner.tenant} itself says.`}>
      <Loaded query={addresses}>
        {({ nodes, loadBalancers }) => {
          const node = spanOf(nodes, address);
          const span = node ?? spanOf(loadBalancers, address);
          if (!span) return <Text fz="sm">No machine and no Service that it knows of.</Text>;
          if (span.users.length > 0) {
            return (
              <Text fz="sm">
                {node ? "Node" : "Service"} <strong>{span.users.join(", ")}</strong>
                {span.platform && ", the platform's own"}
              </Text>
            );
          }
          return <StatusBadge health={span.state === "idle" ? "info" : "unknown"}>{span.state}</StatusBadge>;
        }}
      </Loaded>
    </Panel>
  );
}

function spanOf(spans: Span[], address: string): Span | undefined {
  const asked = parseAddress(address) ?? -1;
  return spans.find(
    ({ start, end }) => (parseAddress(start) ?? Infinity) <= asked && asked <= (parseAddress(end) ?? -1),
  );
}
