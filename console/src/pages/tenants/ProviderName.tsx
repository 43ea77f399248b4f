// The provider of a tenant: a name, or `namespace/name` for one that is not in Butler's own namespace.
import { useSignedIn } from "../../api/session";
import { ObjectLink } from "../../components/ObjectLink";

export function ProviderName({ provider }: { provider: string }) {
  const { home } = useSignedIn();
  if (!provider) return "–";
  const [first = "", second] = provider.split("/");
  const link = second === undefined ? { namespace: home, name: first } : { namespace: first, name: second };
  return <ObjectLink link={{ kind: "provider", ...link }}>{provider}</ObjectLink>;
}
