// Where the person is signed in, and the end of each session.
import { Button, Text } from "@mantine/core";
import { useEndSession, useSessions } from "../../api/session";
import type { Session } from "../../api/types";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { ProblemAlert } from "../../components/ProblemAlert";
import { StatusBadge } from "../../components/StatusBadge";
import { SmallTable } from "../../components/table/SmallTable";
import { Time } from "../../components/Time";
import { VIA } from "../../shell/UserMenu";
import { browserInWords } from "./browser";

export function SessionsPage() {
  const sessions = useSessions();
  const end = useEndSession();
  const others = sessions.data?.items.filter(({ current }) => !current) ?? [];
  const endOthers = async () => {
    for (const { id } of others) await end.mutateAsync(id).catch(() => undefined);
  };
  return (
    <Page title="Your sessions" subtitle="Every browser in which you are signed in. End the ones that you do not know.">
      {end.isError && <ProblemAlert error={end.error} />}
      <Panel
        title="Sessions"
        flush
        actions={
          others.length > 1 && (
            <Button variant="default" onClick={endOthers} loading={end.isPending}>
              End all others
            </Button>
          )
        }
      >
        <Loaded query={sessions}>
          {({ items }) => (
            <SmallTable
              caption="Your sessions"
              columns={["Browser", "Signed in", "Ends", { title: "End it", align: "right" }]}
              rows={items.map((session) => ({
                key: session.id,
                cells: cellsOf(session, end.isPending && end.variables === session.id, end.mutate),
              }))}
            />
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}

function cellsOf(session: Session, ending: boolean, onEnd: (id: string) => void) {
  const browser = browserInWords(session.userAgent);
  return [
    <Text key="browser" fz="sm" lineClamp={2} title={session.userAgent}>
      {browser}
    </Text>,
    <>
      <Time at={session.since} />, {VIA[session.via] ?? session.via}
    </>,
    <Time key="ends" at={session.expiresAt} />,
    session.current ? (
      <StatusBadge health="info">This one</StatusBadge>
    ) : (
      <Button
        variant="default"
        loading={ending}
        aria-label={`End the session in ${browser}`}
        onClick={() => onEnd(session.id)}
      >
        End
      </Button>
    ),
  ];
}
