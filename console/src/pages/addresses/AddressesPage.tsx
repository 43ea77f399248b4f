import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function AddressesPage() {
  return (
    <Page title="Addresses">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
