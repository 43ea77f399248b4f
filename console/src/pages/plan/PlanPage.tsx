// What if: more tenants, single requests, another shape of a pool. Answered by the very functions that decide when it
// happens, played through on what there is now. Nothing is written.
import { Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useMemo, useState } from "react";
import { useSearchParams } from "react-router";
import { usePlan } from "../../api/estate";
import { EmptyState } from "../../components/EmptyState";
import { LinesSkeleton } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { ProblemAlert } from "../../components/ProblemAlert";
import { CommandLine } from "./CommandLine";
import { EditForm } from "./EditForm";
import classes from "./plan.module.css";
import { PlanResult } from "./PlanResult";
import { FIRST_QUESTION, readQuestion, requestOf, writeQuestion, type Question } from "./question";
import { RequestsForm } from "./RequestsForm";
import { TenantsForm } from "./TenantsForm";
import { Verdict } from "./Verdict";

const PAUSE_MS = 200;

export function PlanPage() {
  const [question, setQuestion] = useQuestion();
  const [settled] = useDebouncedValue(question, PAUSE_MS);
  const request = useMemo(() => requestOf(settled), [settled]);
  const plan = usePlan(request);
  const change = (changes: Partial<Question>) => setQuestion({ ...question, ...changes });
  return (
    <Page
      title="Plan"
      subtitle="What would happen if: answered by what decides in production, on what there is now. Nothing is written."
    >
      {request !== null && plan.data && !plan.isError && <Verdict plan={plan.data} />}
      <div className={classes.columns}>
        <Stack gap="md">
          <TenantsForm
            asked={question.tenants}
            onChange={(tenants) => change({ tenants })}
            start={FIRST_QUESTION.tenants}
          />
          <RequestsForm asked={question.requests} onChange={(requests) => change({ requests })} />
          <EditForm asked={question.edit} onChange={(edit) => change({ edit })} />
          <CommandLine question={question} />
        </Stack>
        <div>
          {request === null ? (
            <Panel title="Outcome">
              <EmptyState title="Nothing is asked yet">
                Turn on more tenants, single requests, or an edit of a pool.
              </EmptyState>
            </Panel>
          ) : plan.isError ? (
            <ProblemAlert error={plan.error} onRetry={() => void plan.refetch()} />
          ) : plan.data ? (
            <div
              className={classes.result}
              data-stale={plan.isPlaceholderData || undefined}
              aria-busy={plan.isFetching}
            >
              <PlanResult plan={plan.data} />
            </div>
          ) : (
            <Panel title="Outcome">
              <Text className="visually-hidden" role="status">
                Working it out
              </Text>
              <LinesSkeleton lines={6} />
            </Panel>
          )}
        </div>
      </div>
    </Page>
  );
}

/** The question is part of the page's address, so that it can be shared. */
function useQuestion() {
  const [params, setParams] = useSearchParams();
  const [question, setQuestion] = useState(() => readQuestion(params));
  const [settled] = useDebouncedValue(question, PAUSE_MS);
  useEffect(() => {
    setParams(writeQuestion(settled), { replace: true, preventScrollReset: true });
  }, [settled, setParams]);
  return [question, setQuestion] as const;
}
