import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function PlanPage() {
  return (
    <Page title="Plan">
      <EmptyState title="Not there yet" />
    </Page>
  );
}
