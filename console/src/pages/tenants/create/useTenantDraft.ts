// The tenant that is being written: a text, the form that it amounts to, and what the server says to it. The text is
// kept in this tab until it is created, so that a reload costs nothing.
import { useDebouncedValue, useSessionStorage } from "@mantine/hooks";
import { useMemo, useState } from "react";
import { asProblem } from "../../../api/problem";
import { useTenantPreview } from "../../../api/tenants";
import type { FieldError } from "../../../api/types";
import { parseManifest } from "../manifest";
import { EMPTY_FORM, fieldOfError, readForm, writeForm, type FormField, type TenantForm } from "./tenantForm";

const PAUSE_MS = 350;

export const BLANK = `apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata: {}
spec:
  workers:
    replicas: 3
`;

export function useTenantDraft() {
  const [text, setText, forget] = useSessionStorage({
    key: "butler-new-tenant",
    defaultValue: BLANK,
    getInitialValueInEffect: false,
  });
  const reading = useMemo(() => readForm(text), [text]);
  const form = useLastValid(reading.form);
  const [settled] = useDebouncedValue(text, PAUSE_MS);
  const preview = useTenantPreview(useMemo(() => askable(settled), [settled]));
  const errors = preview.data?.errors ?? (preview.error ? asProblem(preview.error).errors : []);
  return {
    text,
    setText,
    form,
    /** What is wrong with the text; the form then shows what it last said. */
    textError: reading.error,
    change: (changes: Partial<TenantForm>) => setText(writeForm(text, changes)),
    preview,
    errorOf: (field: FormField) => messageFor(errors, field),
    manifest: () => parseManifest(text).manifest,
    forget,
  };
}

export type TenantDraft = ReturnType<typeof useTenantDraft>;

function useLastValid(form: TenantForm | null): TenantForm {
  const [last, setLast] = useState(EMPTY_FORM);
  if (form && form !== last) setLast(form);
  return form ?? last;
}

/** The manifest of a text; null as long as it has no name, which the server would only complain about. */
function askable(text: string) {
  const { form } = readForm(text);
  return form?.name && form.namespace ? parseManifest(text).manifest : null;
}

function messageFor(errors: readonly FieldError[], field: FormField): string | undefined {
  const found = errors.filter((error) => fieldOfError(error.field) === field);
  return found.length > 0 ? found.map(({ message }) => inWords(field, message)).join("; ") : undefined;
}

/** Kubernetes says of a text that is of no use which pattern it does not match; people are better served by an example. */
const EXAMPLES: Partial<Record<FormField, string>> = {
  version: "write it as in v1.33.2",
  memory: "write a number and a unit, as in 16Gi",
  disk: "write a number and a unit, as in 100Gi",
};

function inWords(field: FormField, message: string): string {
  return message.includes("should match") ? (EXAMPLES[field] ?? message) : message;
}
