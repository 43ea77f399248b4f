// Which addresses a tenant would get, or get too when it is changed: what the server answers to a manifest that is
// not written yet.
import { List, Loader, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { asProblem } from "../../api/problem";
import type { Block, FieldError, TenantPreview } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { ProblemAlert } from "../../components/ProblemAlert";
import { HealthIcon } from "../../components/StatusBadge";
import { plural, typeInWords } from "../../words";
import classes from "./preview.module.css";

interface AddressPreviewProps {
  preview: UseQueryResult<TenantPreview>;
  /** What to say where it needs no addresses that it does not have. */
  nothing: string;
  /** Errors that stand somewhere else already. */
  shownElsewhere?: (error: FieldError) => boolean;
}

export function AddressPreview({ preview, nothing, shownElsewhere = () => false }: AddressPreviewProps) {
  const { data, error, isError, isFetching } = preview;
  if (isError) {
    const { errors } = asProblem(error);
    if (errors.length > 0) return <Errors errors={errors} shownElsewhere={shownElsewhere} />;
    return <ProblemAlert error={error} onRetry={() => void preview.refetch()} />;
  }
  if (!data) {
    return (
      <Text fz="sm" c="dimmed" role="status">
        {isFetching ? "Working it out …" : "Told as soon as there is enough to go by."}
      </Text>
    );
  }
  return (
    <div className={classes.preview} aria-live="polite" data-stale={preview.isPlaceholderData || undefined}>
      <Stack gap="xs">
        {data.errors.length > 0 && <Errors errors={data.errors} shownElsewhere={shownElsewhere} />}
        {data.obstacle && (
          <div className={classes.line}>
            <HealthIcon health={data.waits ? "warning" : "critical"} size={17} />
            <div>
              <Text fz="sm" fw={600}>
                {data.waits ? "It would wait" : "It would not work"}
              </Text>
              <Text fz="sm">{data.obstacle}</Text>
              {data.waits && (
                <Text fz="xs" c="dimmed">
                  It would go on by itself as soon as there is room.
                </Text>
              )}
            </div>
          </div>
        )}
        {data.errors.length === 0 && <Gets gets={data.gets} nothing={data.obstacle ? "" : nothing} />}
        {data.warnings.map((warning) => (
          <div key={warning} className={classes.line}>
            <HealthIcon health="warning" size={17} />
            <Text fz="sm">{warning}</Text>
          </div>
        ))}
      </Stack>
      {isFetching && <Loader size={14} className={classes.busy} aria-label="Working it out" />}
    </div>
  );
}

function Gets({ gets, nothing }: { gets: Block[]; nothing: string }) {
  if (gets.length === 0) return nothing ? <Text fz="sm">{nothing}</Text> : null;
  return (
    <ul className={classes.gets}>
      {gets.map((block) => (
        <li key={`${block.type} ${block.allocation}`} className={classes.line}>
          <HealthIcon health={block.range ? "ok" : "warning"} size={17} />
          <div>
            <Text fz="sm">
              <strong>{plural(block.range?.count ?? block.requested, "address", "addresses")}</strong> for{" "}
              {typeInWords(block.type)}
              {block.pool && ` from ${block.pool}`}
            </Text>
            <Text fz="sm">{block.range ? <AddressText range={block.range} /> : block.why || "none free now"}</Text>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Errors({
  errors,
  shownElsewhere,
}: {
  errors: readonly FieldError[];
  shownElsewhere: (error: FieldError) => boolean;
}) {
  const here = errors.filter((error) => !shownElsewhere(error));
  return (
    <div className={classes.line} role="status">
      <HealthIcon health="critical" size={17} />
      <div>
        <Text fz="sm" fw={600}>
          {here.length === errors.length
            ? "This would be refused"
            : "This would be refused: see the fields that are marked"}
        </Text>
        {here.length > 0 && (
          <List fz="sm" spacing={2}>
            {here.map((error) => (
              <List.Item key={`${error.field} ${error.message}`}>
                {error.field && <code>{error.field}: </code>}
                {error.message}
              </List.Item>
            ))}
          </List>
        )}
      </div>
    </div>
  );
}
