import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function ProvidersPage() {
  return (
    <Page title="Providers">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
