// Where in the form one is. Every step can be gone to at any time.
import { UnstyledButton } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import classes from "./create.module.css";
import { STEPS, type Step } from "./steps";
import type { TenantDraft } from "./useTenantDraft";

interface StepListProps {
  current: Step;
  draft: TenantDraft;
  onGo: (step: Step) => void;
}

export function StepList({ current, draft, onGo }: StepListProps) {
  return (
    <ol className={classes.steps} aria-label="Steps">
      {STEPS.map((step, index) => {
        const wrong = step.fields.some((field) => draft.errorOf(field) !== undefined);
        return (
          <li key={step.id}>
            <UnstyledButton
              className={classes.stepLink}
              aria-current={step === current ? "step" : undefined}
              data-wrong={wrong || undefined}
              onClick={() => onGo(step)}
            >
              {wrong ? (
                <IconAlertCircle size={20} aria-label="has errors:" />
              ) : (
                <span className={classes.number}>{index + 1}</span>
              )}
              {step.title}
            </UnstyledButton>
          </li>
        );
      })}
    </ol>
  );
}
