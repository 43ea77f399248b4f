// What an edit or a new pool would do, before it is done.
import { Anchor, Collapse, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { UseQueryResult } from "@tanstack/react-query";
import { Fragment } from "react";
import type { Fill, PoolPreview } from "../../../api/types";
import { CopyBlock } from "../../../components/CopyText";
import { LinesSkeleton } from "../../../components/Loaded";
import { ProblemAlert } from "../../../components/ProblemAlert";
import { StatusBadge } from "../../../components/StatusBadge";
import { count, rangeInWords, tierInWords } from "../../../words";
import { Notes } from "../Notes";
import classes from "../pools.module.css";

interface PoolPreviewViewProps {
  query: UseQueryResult<PoolPreview>;
  /** Said while there is nothing to ask about. */
  hint: string;
}

export function PoolPreviewView({ query, hint }: PoolPreviewViewProps) {
  const { data, isError, error, isPlaceholderData, fetchStatus, status } = query;
  const asked = !(status === "pending" && fetchStatus === "idle");
  return (
    <section
      className={classes.preview}
      aria-label="Preview"
      aria-live="polite"
      data-old={isPlaceholderData || undefined}
    >
      {!asked && <Text c="dimmed">{hint}</Text>}
      {asked && isError && <ProblemAlert error={error} />}
      {asked && !isError && !data && <LinesSkeleton lines={3} />}
      {asked && !isError && data && <Effect preview={data} />}
    </section>
  );
}

function Effect({ preview }: { preview: PoolPreview }) {
  const [opened, { toggle }] = useDisclosure();
  const { allowed, errors, warnings, stranded, before, after, cidr, windows } = preview;
  return (
    <div className={classes.rows}>
      <div>
        <StatusBadge health={allowed ? "ok" : "critical"}>
          {allowed ? "This can be done" : "This would be refused"}
        </StatusBadge>{" "}
        <span className="mono">{cidr}</span>
      </div>
      <Notes
        health="critical"
        title="What is in the way"
        notes={errors.map(({ field, message }) => [labelOf(field), message].filter(Boolean).join(": "))}
      />
      <Notes health="warning" title="Mind this" notes={warnings} />
      <Notes
        health="warning"
        title="Held, but no longer handed out"
        notes={stranded.map(
          ({ name, tenant, range }) => `${name} of ${tenant}: ${rangeInWords(range.start, range.end)}`,
        )}
      />
      {after && <Comparison before={before} after={after} />}
      {windows.length > 0 && (
        <Text fz="sm">
          Handed out:{" "}
          {windows.map(({ start, end }, index) => (
            <Fragment key={start}>
              {index > 0 && ", "}
              <span className="mono">{rangeInWords(start, end)}</span>
            </Fragment>
          ))}
        </Text>
      )}
      <Anchor
        component="button"
        type="button"
        fz="xs"
        style={{ justifySelf: "start" }}
        onClick={toggle}
        aria-expanded={opened}
      >
        {opened ? "Hide" : "Show"} the object as it would be written
      </Anchor>
      <Collapse expanded={opened}>
        <CopyBlock text={preview.yaml} what="the object as YAML" />
      </Collapse>
    </div>
  );
}

const LABELS: Record<string, string> = {
  name: "Name",
  cidr: "Network",
  windows: "Windows",
  reserved: "Reserved",
  defaults: "Per tenant",
};

/** The field of the form that an error is about: `reserved[1].cidr` is the second reserved block. */
function labelOf(field: string): string {
  const [, part = "", index] = /^(\w+)(?:\[(\d+)\])?/.exec(field) ?? [];
  const label = LABELS[part] ?? field;
  return index === undefined ? label : `${label} ${Number(index) + 1}`;
}

const ROWS: { title: string; of: (fill: Fill) => string }[] = [
  { title: "Addresses for tenants", of: (fill) => count(fill.total) },
  { title: "Held", of: (fill) => count(fill.allocated) },
  { title: "Free", of: (fill) => count(fill.available) },
  { title: "Largest free block", of: (fill) => count(fill.largestFreeBlock) },
  { title: "Percent held", of: (fill) => `${fill.percent}%` },
  { title: "State", of: (fill) => fill.tiers.map(tierInWords).at(-1) ?? "has room" },
];

function Comparison({ before, after }: { before: Fill | null; after: Fill }) {
  return (
    <table className={classes.compare}>
      <caption className="visually-hidden">Before and after</caption>
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">Figure</span>
          </th>
          {before && <th scope="col">now</th>}
          <th scope="col">{before ? "then" : "new pool"}</th>
        </tr>
      </thead>
      <tbody>
        {ROWS.map(({ title, of }) => (
          <tr key={title}>
            <th scope="row">{title}</th>
            {before && <td>{of(before)}</td>}
            <td data-changed={before !== null && of(before) !== of(after) ? true : undefined}>{of(after)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
