import { useParams } from "react-router";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function AllocationPage() {
  const { name = "" } = useParams();
  return (
    <Page title={name}>
      <EmptyState title="Not there yet" />
    </Page>
  );
}
