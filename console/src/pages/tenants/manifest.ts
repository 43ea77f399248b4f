// Manifests as text and as objects.
import { isMap, LineCounter, parseDocument, type Document } from "yaml";
import type { Manifest } from "../../api/tenants";

export interface TextError {
  message: string;
  /** From 1; null where it cannot be told. */
  line: number | null;
}

export type Parsed =
  { document: Document; manifest: Manifest; error: null } | { document: null; manifest: null; error: TextError };

/** The manifest in a text, or what is wrong with the text. */
export function parseManifest(text: string): Parsed {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [first] = document.errors;
  if (first) return wrong(sentence(first.message), lines.linePos(first.pos[0]).line);
  if (!isMap(document.contents)) return wrong("A manifest is a list of fields, such as `kind: TenantCluster`.", null);
  try {
    return { document, manifest: document.toJS() as Manifest, error: null };
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error), null);
  }
}

/** The manifest with one field set to another value; null where the text is none. */
export function withField(text: string, path: readonly string[], value: unknown): Manifest | null {
  const { document } = parseManifest(text);
  if (!document) return null;
  document.setIn(path, value);
  return document.toJS() as Manifest;
}

function wrong(message: string, line: number | null): Parsed {
  return { document: null, manifest: null, error: { message, line } };
}

function sentence(message: string): string {
  return message.replace(/ at line \d+, column \d+:?[\s\S]*$/, "").trim();
}
