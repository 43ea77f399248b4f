// A light editor for manifests: line numbers, the line that is wrong, and lines that begin where the last one began.
// Tab leaves the field, as everywhere else on the page.
import { useId, useLayoutEffect, useRef, type KeyboardEvent } from "react";
import { Text } from "@mantine/core";
import classes from "./YamlEditor.module.css";

interface YamlEditorProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  /** What is wrong with the text, and on which line (from 1) if that is known. */
  error?: { message: string; line: number | null } | null;
  /** So many lines are always there. */
  least?: number;
}

export function YamlEditor({ label, value, onChange, error = null, least = 12 }: YamlEditorProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const caret = useRef<number | null>(null);
  const id = useId();
  useLayoutEffect(() => {
    if (caret.current !== null) field.current?.setSelectionRange(caret.current, caret.current);
    caret.current = null;
  }, [value]);
  const breakLine = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
    event.preventDefault();
    const { selectionStart, selectionEnd } = event.currentTarget;
    const before = value.slice(0, selectionStart);
    const indent = /^ */.exec(before.slice(before.lastIndexOf("\n") + 1))?.[0] ?? "";
    caret.current = selectionStart + 1 + indent.length;
    onChange(`${before}\n${indent}${value.slice(selectionEnd)}`);
  };
  const lines = value.split("\n").length;
  return (
    <div>
      <div className={classes.editor} data-wrong={error ? true : undefined}>
        <div className={classes.numbers} aria-hidden>
          {Array.from({ length: lines }, (_, index) => (
            <div key={index} data-wrong={error?.line === index + 1 || undefined}>
              {index + 1}
            </div>
          ))}
        </div>
        <textarea
          ref={field}
          className={classes.text}
          aria-label={label}
          aria-invalid={error ? true : undefined}
          aria-describedby={error ? id : undefined}
          value={value}
          rows={Math.max(least, lines)}
          wrap="off"
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          onChange={(event) => onChange(event.currentTarget.value)}
          onKeyDown={breakLine}
        />
      </div>
      {error && (
        <Text id={id} fz="xs" c="var(--critical)" mt={4} role="alert">
          {error.line === null ? error.message : `Line ${error.line}: ${error.message}`}
        </Text>
      )}
    </div>
  );
}
