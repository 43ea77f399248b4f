import { useParams } from "react-router";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function ProviderPage() {
  const { name = "" } = useParams();
  return (
    <Page title={name}>
      <EmptyState title="Not there yet" />
    </Page>
  );
}
