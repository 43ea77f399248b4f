// A page that broke: the rest of the console stays.
import { Button, Group } from "@mantine/core";
import { isRouteErrorResponse, Link, useRouteError } from "react-router";
import { EmptyState } from "../components/EmptyState";
import { Page } from "../components/Page";
import { ProblemAlert } from "../components/ProblemAlert";
import { paths } from "../paths";

export function RouteError() {
  const error = useRouteError();
  if (isRouteErrorResponse(error) && error.status === 404) return <NotFound />;
  return (
    <Page title="This page broke">
      <ProblemAlert error={error} onRetry={() => window.location.reload()} />
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="There is no such page">
      <EmptyState
        title="Nothing is at this address"
        action={
          <Group mt="xs">
            <Button component={Link} to={paths.overview}>
              To the overview
            </Button>
          </Group>
        }
      >
        The link may be old, or what it led to was deleted. Ctrl-K finds everything that is there.
      </EmptyState>
    </Page>
  );
}
