import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function ActivityPage() {
  return (
    <Page title="Activity">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
