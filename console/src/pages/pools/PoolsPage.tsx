import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function PoolsPage() {
  return (
    <Page title="Pools">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
