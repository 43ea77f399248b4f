// Where the person is signed in, and the end of each session.
import { Button, Table, Text } from "@mantine/core";
import { useEndSession, useSessions } from "../../api/session";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { ProblemAlert } from "../../components/ProblemAlert";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { VIA } from "../../shell/UserMenu";

export function SessionsPage() {
  const sessions = useSessions();
  const end = useEndSession();
  return (
    <Page title="Your sessions" subtitle="Every browser in which you are signed in. End the ones that you do not know.">
      {end.isError && <ProblemAlert error={end.error} />}
      <Panel title="Sessions" flush>
        <Loaded query={sessions}>
          {({ items }) => (
            <Table.ScrollContainer minWidth={520} type="native">
              <Table verticalSpacing={8} horizontalSpacing="sm">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Browser</Table.Th>
                    <Table.Th>Signed in</Table.Th>
                    <Table.Th>Ends</Table.Th>
                    <Table.Th>
                      <span className="visually-hidden">Actions</span>
                    </Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {items.map((session) => (
                    <Table.Tr key={session.id}>
                      <Table.Td>
                        <Text fz="sm" lineClamp={2}>
                          {session.userAgent || "not known"}
                        </Text>
                        {session.current && <StatusBadge health="info">This one</StatusBadge>}
                      </Table.Td>
                      <Table.Td>
                        <Time at={session.since} />, {VIA[session.via] ?? session.via}
                      </Table.Td>
                      <Table.Td>
                        <Time at={session.expiresAt} />
                      </Table.Td>
                      <Table.Td ta="right">
                        {!session.current && (
                          <Button
                            variant="default"
                            loading={end.isPending && end.variables === session.id}
                            onClick={() => end.mutate(session.id)}
                          >
                            End
                          </Button>
                        )}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}
