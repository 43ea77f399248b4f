// The conditions of a tenant as a story: what came to be, in order, and what it waits for now.
import { Text } from "@mantine/core";
import type { Condition } from "../../../api/types";
import { HealthIcon, type Health } from "../../../components/StatusBadge";
import { Time } from "../../../components/Time";
import classes from "./detail.module.css";

/** What each condition means when it holds, and when it does not. */
const WORDS: Record<string, [holds: string, holdsNot: string]> = {
  ProviderAccessGranted: ["The provider can be used", "The provider cannot be used"],
  QuotaSatisfied: ["It is within its limits", "It is over a limit"],
  NetworkReady: ["It has its addresses", "It waits for addresses"],
  InfrastructureReady: ["The provider has what the machines need", "The provider is not prepared"],
  ControlPlaneReady: ["The API server answers", "The API server does not answer"],
  WorkersReady: ["Workers are ready", "Workers are not all ready"],
  AddonsReady: ["Addons are installed", "Addons are not all installed"],
  LoadBalancersReady: ["MetalLB has its addresses", "Load balancers are not ready"],
  Ready: ["It can be used", "It cannot be used yet"],
  Paused: ["It is paused", "It is not paused"],
  Deleting: ["It is being deleted", "It is not being deleted"],
};

/** Conditions that are news only when they hold. */
const EXCEPTIONS = new Set(["Paused", "Deleting"]);

export function Story({ createdAt, steps }: { createdAt: string | null; steps: Condition[] }) {
  const told = steps.filter(({ type, status }) => status === "True" || !EXCEPTIONS.has(type));
  return (
    <ol className={classes.story}>
      <Step health="info" title="Created" at={createdAt} />
      {told.map((step) => (
        <Step
          key={step.type}
          health={healthOf(step)}
          title={titleOf(step)}
          message={messageOf(step)}
          name={step.type}
          at={step.since}
        />
      ))}
    </ol>
  );
}

interface StepProps {
  health: Health;
  title: string;
  message?: string;
  name?: string;
  at: string | null;
}

function Step({ health, title, message, name, at }: StepProps) {
  return (
    <li className={classes.step}>
      <HealthIcon health={health} size={17} />
      <div className={classes.stepWords}>
        <Text fz="sm" fw={500} title={name}>
          {title}
        </Text>
        {message && (
          <Text fz="xs" c="dimmed">
            {message}
          </Text>
        )}
      </div>
      <Text fz="xs" c="dimmed" component="div">
        <Time at={at} />
      </Text>
    </li>
  );
}

function titleOf({ type, status }: Condition): string {
  const words = WORDS[type];
  if (!words) return `${type}: ${status}`;
  return status === "Unknown" ? `${type}: not known` : words[status === "True" ? 0 : 1];
}

/** What the title does not say yet. */
function messageOf(step: Condition): string {
  const message = step.message || step.reason;
  return message.toLowerCase() === titleOf(step).toLowerCase() || message === "the cluster can be used" ? "" : message;
}

/** What is not yet so is on its way, unless it is a failure. */
function healthOf({ status, health }: Condition): Health {
  return status !== "True" && health === "warning" ? "working" : health;
}
