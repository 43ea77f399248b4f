// How answers of the server are kept. The live stream says when they are out of date, so they stay until then.
import { QueryCache, QueryClient, MutationCache } from "@tanstack/react-query";
import { asProblem } from "./api/problem";
import { forgetSession } from "./api/session";

const MINUTE_MS = 60_000;

function onError(error: unknown): void {
  if (asProblem(error).status === 401) forgetSession(queryClient);
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({
    onError: (error, _variables, _result, mutation) => {
      // A refused password is no ended session.
      if (mutation.meta?.login !== true) onError(error);
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: MINUTE_MS,
      // What the server refuses, it refuses again; only a server that does not answer is worth another try.
      retry: (failures, error) => asProblem(error).status === 0 && failures < 2,
    },
  },
});
