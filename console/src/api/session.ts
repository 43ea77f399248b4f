// Who is there: coming in, going out, and the person's sessions.
import { useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { api, dataOf, setCsrfToken } from "./client";
import { forgetPerson } from "../storage";
import { keys } from "./keys";
import { asProblem } from "./problem";
import type { Me } from "./types";

/** The person, or null before a login: the shell then shows the login page. */
export function useMe() {
  return useQuery({ queryKey: keys.me, queryFn: askWhoIsThere, staleTime: Infinity });
}

/** The person, on pages that are shown to persons only. */
export function useSignedIn(): Me {
  const { data } = useMe();
  if (!data) throw new Error("no person is signed in");
  return data;
}

async function askWhoIsThere(): Promise<Me | null> {
  try {
    const me = await dataOf(api.GET("/api/v1/me"));
    setCsrfToken(me.csrfToken);
    return me;
  } catch (error) {
    if (asProblem(error).status === 401) {
      forgetPerson();
      return null;
    }
    throw error;
  }
}

/** Forgets everything that was loaded: the session is over, or another person comes. */
export function forgetSession(client: QueryClient): void {
  setCsrfToken("");
  forgetPerson();
  client.setQueryData(keys.me, null);
  client.removeQueries({ predicate: (query) => query.queryKey[0] !== "me" && query.queryKey[0] !== "login-methods" });
}

export function useLoginMethods() {
  return useQuery({ queryKey: keys.loginMethods, queryFn: () => dataOf(api.GET("/api/v1/login-methods")) });
}

export function usePasswordLogin() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: { user: string; password: string }) => dataOf(api.POST("/api/v1/login/password", { body })),
    meta: { login: true },
    onSuccess: () => client.refetchQueries({ queryKey: keys.me }),
  });
}

export function useLogout() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => dataOf(api.POST("/api/v1/logout")),
    onSuccess: () => forgetSession(client),
  });
}

export function useSessions() {
  return useQuery({ queryKey: keys.sessions, queryFn: () => dataOf(api.GET("/api/v1/sessions")) });
}

export function useEndSession() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => dataOf(api.DELETE("/api/v1/sessions/{id}", { params: { path: { id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.sessions }),
  });
}
