// The form of a tenant beside its manifest. The text is what counts: the form is read from it, and writes into it only
// the fields that the user changed. Comments, order and everything that the form does not know stay as they are.
import { isMap, isScalar, type Document } from "yaml";
import { parseManifest, type TextError } from "../manifest";

export interface TenantForm {
  name: string;
  namespace: string;
  team: string;
  version: string;
  provider: string;
  providerNamespace: string;
  workers: string;
  cpu: string;
  memory: string;
  disk: string;
  lbPoolSize: string;
}

export type FormField = keyof TenantForm;

/** Where in the manifest each field of the form is. */
export const FIELD_PATHS: Record<FormField, readonly string[]> = {
  name: ["metadata", "name"],
  namespace: ["metadata", "namespace"],
  team: ["spec", "teamRef", "name"],
  version: ["spec", "kubernetesVersion"],
  provider: ["spec", "providerConfigRef", "name"],
  providerNamespace: ["spec", "providerConfigRef", "namespace"],
  workers: ["spec", "workers", "replicas"],
  cpu: ["spec", "workers", "machineTemplate", "cpu"],
  memory: ["spec", "workers", "machineTemplate", "memory"],
  disk: ["spec", "workers", "machineTemplate", "diskSize"],
  lbPoolSize: ["spec", "networking", "lbPoolSize"],
};

export const EMPTY_FORM: TenantForm = {
  name: "",
  namespace: "",
  team: "",
  version: "",
  provider: "",
  providerNamespace: "",
  workers: "",
  cpu: "",
  memory: "",
  disk: "",
  lbPoolSize: "",
};

const NUMBERS: ReadonlySet<FormField> = new Set(["workers", "cpu", "lbPoolSize"]);
const FIELDS = Object.keys(FIELD_PATHS) as FormField[];

export type FormReading = { form: TenantForm; error: null } | { form: null; error: TextError };

/** The form that a text amounts to, or what is wrong with the text. */
export function readForm(text: string): FormReading {
  const { document, error } = parseManifest(text);
  if (!document) return { form: null, error };
  const form = Object.fromEntries(FIELDS.map((field) => [field, textAt(document, FIELD_PATHS[field])]));
  return { form: form as unknown as TenantForm, error: null };
}

/** The text with these fields changed. A field that is emptied goes, and so do parents that it leaves empty. */
export function writeForm(text: string, changes: Partial<TenantForm>): string {
  const { document } = parseManifest(text);
  if (!document) return text;
  for (const [field, value] of Object.entries(changes) as [FormField, string][]) {
    const path = FIELD_PATHS[field];
    if (value === "") remove(document, path);
    else if (clearWay(document, path)) {
      document.setIn(path, NUMBERS.has(field) && /^\d+$/.test(value) ? Number(value) : value);
      putInOrder(document, path);
    }
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** The field of the form that an error speaks of; null for one that the form does not know. */
export function fieldOfError(errorField: string): FormField | null {
  const field = FIELDS.find((each) => FIELD_PATHS[each].join(".") === errorField);
  if (field) return field;
  // Errors may name the object around a field, as `spec.teamRef` does.
  return FIELDS.find((each) => FIELD_PATHS[each].slice(0, -1).join(".") === errorField && each !== "cpu") ?? null;
}

function textAt(document: Document, path: readonly string[]): string {
  const value = reaches(document, path) ? document.getIn(path) : undefined;
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Whether everything on the way is an object: `getIn` throws on `spec: 3`. */
function reaches(document: Document, path: readonly string[]): boolean {
  return path.slice(0, -1).every((_, index) => isMap(document.getIn(path.slice(0, index + 1), true)));
}

/** Makes room for a value: `metadata:` and `metadata: {}` become objects with a field to a line. False where a word is in the way. */
function clearWay(document: Document, path: readonly string[]): boolean {
  for (let length = 1; length < path.length; length += 1) {
    const parent = path.slice(0, length);
    const value: unknown = document.getIn(parent, true);
    if (value === undefined) return true;
    if (isMap(value)) {
      if (value.items.length === 0) value.flow = false;
    } else if (isScalar(value) && value.value === null) {
      document.deleteIn(parent);
      return true;
    } else return false;
  }
  return true;
}

/** The usual order of a spec: what is new there comes before what usually follows it. */
const ORDER = ["kubernetesVersion", "providerConfigRef", "teamRef", "workers", "networking"];

function putInOrder(document: Document, [first, second = ""]: readonly string[]): void {
  const parent = first === "spec" ? document.get(first, true) : null;
  if (!isMap(parent) || nameOf(parent.items.at(-1)) !== second) return;
  const followers = ORDER.slice(ORDER.indexOf(second) + 1);
  const at = parent.items.findIndex((pair) => followers.includes(nameOf(pair)));
  if (at >= 0) parent.items.splice(at, 0, ...parent.items.splice(-1, 1));
}

function nameOf(pair: { key: unknown } | undefined): string {
  const key = pair?.key;
  return isScalar(key) ? String(key.value) : String(key);
}

function remove(document: Document, path: readonly string[]): void {
  if (!reaches(document, path)) return;
  document.deleteIn(path);
  for (let length = path.length - 1; length > 1; length -= 1) {
    const parent = path.slice(0, length);
    const value = document.getIn(parent, true);
    if (!isMap(value) || value.items.length > 0) return;
    document.deleteIn(parent);
  }
}
