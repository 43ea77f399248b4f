// What went wrong, as a type: every failed call of the API throws a ProblemError.
import type { FieldError, Problem } from "./types";

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
    this.name = "ProblemError";
  }

  get status(): number {
    return this.problem.status;
  }

  /** The stable word after `urn:butler:problem:`. */
  get word(): string {
    return this.problem.type.replace("urn:butler:problem:", "");
  }

  get errors(): readonly FieldError[] {
    return this.problem.errors ?? [];
  }
}

const UNREACHABLE: Problem = {
  type: "urn:butler:problem:unreachable",
  title: "Butler does not answer",
  status: 0,
  detail: "The server could not be reached. Check that it runs and that this machine is online; the page tries again.",
};

/** The problem that an answer tells of; answers of proxies in between are not problem+json. */
export async function problemOf(response: Response): Promise<ProblemError> {
  const body: unknown = await response.json().catch(() => null);
  if (isProblem(body)) return new ProblemError(body);
  return new ProblemError({
    type: "urn:butler:problem:unknown",
    title: `The server answered ${response.status} ${response.statusText}`.trim(),
    status: response.status,
    detail: "It did not say why. If a proxy stands between this page and Butler, its log may tell.",
  });
}

export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  // fetch throws a TypeError when there is no answer at all.
  if (error instanceof TypeError) return new ProblemError(UNREACHABLE);
  return new ProblemError({
    type: "urn:butler:problem:defect",
    title: "Something in this page went wrong",
    status: -1,
    detail: error instanceof Error ? error.message : String(error),
  });
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "status" in body && "title" in body && "detail" in body;
}
