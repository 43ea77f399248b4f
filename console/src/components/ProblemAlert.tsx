// Something failed: what, why, and what to do.
import { Button, Group, List, Text } from "@mantine/core";
import { asProblem } from "../api/problem";
import classes from "./ProblemAlert.module.css";
import { HealthIcon } from "./StatusBadge";

interface ProblemAlertProps {
  error: unknown;
  onRetry?: () => void;
}

export function ProblemAlert({ error, onRetry }: ProblemAlertProps) {
  const problem = asProblem(error);
  return (
    <div role="alert" className={classes.problem}>
      <HealthIcon health="critical" size={18} />
      <div className={classes.words}>
        <Text fw={600} fz="sm">
          {problem.problem.title}
        </Text>
        <Text fz="sm">{problem.problem.detail}</Text>
        {problem.errors.length > 0 && (
          <List fz="sm" spacing={2} mt={4}>
            {problem.errors.map((error) => (
              <List.Item key={`${error.field} ${error.message}`}>
                {error.field && <code>{error.field}: </code>}
                {error.message}
              </List.Item>
            ))}
          </List>
        )}
        {onRetry && (
          <Group mt="xs">
            <Button variant="default" onClick={onRetry}>
              Try again
            </Button>
          </Group>
        )}
      </div>
    </div>
  );
}
