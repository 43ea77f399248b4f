// Lets pages be seen by people who came in, and shows others the way.
import { Center, Container, Loader } from "@mantine/core";
import { Navigate, useLocation } from "react-router";
import { useMe } from "../api/session";
import { ProblemAlert } from "../components/ProblemAlert";
import { paths } from "../paths";
import { Shell } from "./Shell";

export function SignedIn() {
  const me = useMe();
  const here = useLocation();
  if (me.data) return <Shell />;
  if (me.data === null) {
    const next = here.pathname + here.search;
    return <Navigate to={next === "/" ? paths.login : `${paths.login}?next=${encodeURIComponent(next)}`} replace />;
  }
  if (me.isError) {
    return (
      <Container size="xs" pt="20vh">
        <ProblemAlert error={me.error} onRetry={() => void me.refetch()} />
      </Container>
    );
  }
  return (
    <Center h="100vh">
      <Loader size="sm" aria-label="Loading" />
    </Center>
  );
}
