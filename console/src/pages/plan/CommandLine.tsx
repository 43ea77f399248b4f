// The same question for a terminal.
import { Text } from "@mantine/core";
import { CopyBlock } from "../../components/CopyText";
import { Panel } from "../../components/Panel";
import { commandLineOf, type Question } from "./question";

export function CommandLine({ question }: { question: Question }) {
  const { command, reason } = commandLineOf(question);
  return (
    <Panel
      title="From the terminal"
      hint="The same question as a command. The address of this page can be shared, too."
    >
      {command === null ? (
        <Text fz="sm" c="dimmed">
          {reason}
        </Text>
      ) : (
        <CopyBlock text={command} what="command" wrap />
      )}
    </Panel>
  );
}
