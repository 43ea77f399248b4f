// What is asked of a plan: as the page's address (so that it can be shared), as the request to the server, and as the
// command line that gives the same answer. Names of parameters are those of `butleradm ipam plan`.
import type { PlanRequest } from "../../api/types";

export interface TenantsQuestion {
  count: number;
  /** Null: one. */
  nodes: number | null;
  /** Null: what the provider or the pool gives. */
  lb: number | null;
  /** Empty: where clusters go that name none. */
  provider: string;
  pools: string[];
}

export interface RequestsQuestion {
  pool: string;
  type: "nodes" | "loadbalancer";
  counts: number[];
}

export interface EditQuestion {
  pool: string;
  cidr: string;
  /** Each `START-END`. */
  windows: string[];
  reserve: string[];
}

export interface Question {
  tenants: TenantsQuestion | null;
  requests: RequestsQuestion | null;
  edit: EditQuestion | null;
}

export const MOST_TENANTS = 1000;
export const MOST_NODES = 5000;
export const MOST_ADDRESSES = 65536;

export const FIRST_QUESTION: Question = {
  tenants: { count: 4, nodes: null, lb: null, provider: "", pools: [] },
  requests: null,
  edit: null,
};

export function readQuestion(params: URLSearchParams): Question {
  const tenants = number(params.get("tenants"), MOST_TENANTS);
  const counts = params.getAll("count").flatMap((text) => number(text, MOST_ADDRESSES) ?? []);
  const hasEdit = params.has("edit");
  const question: Question = {
    tenants:
      tenants === null
        ? null
        : {
            count: tenants,
            nodes: number(params.get("nodes"), MOST_NODES),
            lb: number(params.get("lb"), MOST_ADDRESSES),
            provider: params.get("provider") ?? "",
            pools: params.getAll("pool"),
          },
    requests: params.has("from")
      ? { pool: params.get("from") ?? "", type: params.get("type") === "nodes" ? "nodes" : "loadbalancer", counts }
      : null,
    edit: hasEdit
      ? {
          pool: params.get("edit") ?? "",
          cidr: params.get("cidr") ?? "",
          windows: params.getAll("window"),
          reserve: params.getAll("reserve"),
        }
      : null,
  };
  return question.tenants || question.requests || question.edit ? question : FIRST_QUESTION;
}

export function writeQuestion({ tenants, requests, edit }: Question): URLSearchParams {
  const params = new URLSearchParams();
  if (tenants) {
    params.set("tenants", String(tenants.count));
    if (tenants.nodes !== null) params.set("nodes", String(tenants.nodes));
    if (tenants.lb !== null) params.set("lb", String(tenants.lb));
    if (tenants.provider) params.set("provider", tenants.provider);
    for (const pool of tenants.pools) params.append("pool", pool);
  }
  if (requests) {
    params.set("from", requests.pool);
    if (requests.type === "nodes") params.set("type", "nodes");
    for (const count of requests.counts) params.append("count", String(count));
  }
  if (edit) {
    params.set("edit", edit.pool);
    if (edit.cidr) params.set("cidr", edit.cidr);
    for (const window of edit.windows) params.append("window", window);
    for (const network of edit.reserve) params.append("reserve", network);
  }
  return params;
}

/** What to send; null while nothing is asked yet. */
export function requestOf({ tenants, requests, edit }: Question): PlanRequest | null {
  const body: PlanRequest = {};
  if (tenants) {
    body.tenants = {
      count: tenants.count,
      nodes: tenants.nodes,
      loadBalancers: tenants.lb,
      provider: tenants.provider || null,
      pools: tenants.pools,
    };
  }
  if (requests?.pool && requests.counts.length > 0) {
    body.requests = requests.counts.map((count) => ({ pool: requests.pool, count, type: requests.type }));
  }
  if (edit?.pool && isEdit(edit)) {
    body.edit = {
      pool: edit.pool,
      cidr: edit.cidr || null,
      windows: edit.windows.map(endsOf),
      reserve: edit.reserve,
    };
  }
  return (body.tenants ?? body.requests ?? body.edit) ? body : null;
}

export type CommandLine = { command: string; reason: null } | { command: null; reason: string };

/** The same question for a terminal; it knows one `--pool` with requests and edits, so some have no command line. */
export function commandLineOf({ tenants, requests, edit }: Question): CommandLine {
  const asks = requests?.pool && requests.counts.length > 0 ? requests : null;
  const edits = edit?.pool && isEdit(edit) ? edit : null;
  const own = [asks?.pool, edits?.pool].filter((pool) => pool !== undefined);
  if (!tenants && own.length === 0) return { command: null, reason: "Nothing is asked yet." };
  if (new Set(own).size > 1) return { command: null, reason: "A command line asks and edits one pool at a time." };
  if (tenants && own[0] !== undefined && !tenants.provider && tenants.pools.join() !== own[0]) {
    return {
      command: null,
      reason: "A command line that names a pool to ask or edit needs the provider of the tenants, too.",
    };
  }
  if (tenants?.provider && own[0] !== undefined && tenants.pools.length > 0) {
    return {
      command: null,
      reason: "A command line cannot choose pools of the provider and edit or ask another at once.",
    };
  }
  const words = ["butleradm", "ipam", "plan"];
  if (tenants) {
    words.push("--tenants", String(tenants.count));
    if (tenants.nodes !== null) words.push("--nodes", String(tenants.nodes));
    if (tenants.lb !== null) words.push("--lb", String(tenants.lb));
    if (tenants.provider) words.push("--provider", quoted(tenants.provider));
  }
  const pools = own[0] === undefined ? (tenants?.pools ?? []) : [own[0]];
  for (const pool of pools) words.push("--pool", quoted(pool));
  if (asks) {
    for (const count of asks.counts) words.push("--count", String(count));
    if (asks.type === "nodes") words.push("--type", "nodes");
  }
  if (edits) {
    if (edits.cidr) words.push("--cidr", quoted(edits.cidr));
    for (const window of edits.windows) words.push("--window", quoted(window));
    for (const network of edits.reserve) words.push("--reserve", quoted(network));
  }
  return { command: words.join(" "), reason: null };
}

function isEdit({ cidr, windows, reserve }: EditQuestion): boolean {
  return cidr !== "" || windows.length > 0 || reserve.length > 0;
}

function endsOf(window: string): [string, string] {
  const [start = "", end = start] = window.split(/\s*[-–]\s*/);
  return [start.trim(), end.trim()];
}

function number(text: string | null, most: number): number | null {
  if (text === null || !/^\d{1,6}$/.test(text)) return null;
  const value = Number(text);
  return value >= 1 && value <= most ? value : null;
}

/** As a shell takes it; names and networks need no quotes. */
function quoted(word: string): string {
  return /^[\w./:@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
