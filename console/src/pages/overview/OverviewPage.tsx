import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function OverviewPage() {
  return (
    <Page title="Overview">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
