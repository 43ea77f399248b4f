import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function TenantsPage() {
  return (
    <Page title="Tenants">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
