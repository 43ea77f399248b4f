// The one way to the server. Calls are typed by schema.d.ts; a failed one throws a ProblemError.
import createClient, { type Middleware } from "openapi-fetch";
import { problemOf } from "./problem";
import type { paths } from "./schema";

// Comes with /me (see session.ts). It is kept here alone, never in storage.
let csrfToken = "";

export function setCsrfToken(token: string): void {
  csrfToken = token;
}

// What the live stream has told of: an answer must know as much, whichever replica gives it.
let heard = "";

export function setHeard(text: string): void {
  heard = text;
}

const guard: Middleware = {
  onRequest({ request }) {
    if (heard) request.headers.set("Butler-Heard", heard);
    if (request.method !== "GET") request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  async onResponse({ response }) {
    if (!response.ok) throw await problemOf(response);
  },
};

export const api = createClient<paths>({ baseUrl: "/", credentials: "same-origin" });
api.use(guard);

/** The data of a call that succeeded; `guard` has thrown for every other. */
export async function dataOf<Data>(call: Promise<{ data?: Data }>): Promise<Data> {
  const { data } = await call;
  return data as Data;
}

/** Filters come from the page's address, where anything may stand: the server refuses what it does not know. */
export function asFilters(query: object): never {
  return query as never;
}

/** Lets a write through only while the object is still what was shown. */
export function ifMatch(resourceVersion: string): { "If-Match": string } {
  return { "If-Match": `"${resourceVersion}"` };
}
