// An answer of the server in each of its states: on its way, failed, there, or there but out of date.
import { Skeleton, Stack } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemAlert } from "./ProblemAlert";

interface LoadedProps<Data> {
  query: UseQueryResult<Data>;
  /** What stands there while it loads; lines of text unless told. */
  skeleton?: ReactNode;
  children: (data: Data) => ReactNode;
}

export function Loaded<Data>({ query, skeleton = <LinesSkeleton />, children }: LoadedProps<Data>) {
  const retry = () => void query.refetch();
  if (query.data === undefined) {
    return query.isError ? <ProblemAlert error={query.error} onRetry={retry} /> : <Waiting>{skeleton}</Waiting>;
  }
  return (
    <>
      {query.isError && <ProblemAlert error={query.error} onRetry={retry} />}
      {children(query.data)}
    </>
  );
}

export function LinesSkeleton({ lines = 4, height = 14 }: { lines?: number; height?: number }) {
  return (
    <Stack gap="sm" py="xs">
      {Array.from({ length: lines }, (_, index) => (
        <Skeleton key={index} height={height} width={index % 3 === 2 ? "60%" : "100%"} radius="sm" />
      ))}
    </Stack>
  );
}

function Waiting({ children }: { children: ReactNode }) {
  return (
    <div role="status" aria-busy>
      <span className="visually-hidden">Loading</span>
      {children}
    </div>
  );
}
