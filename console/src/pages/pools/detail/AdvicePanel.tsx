// Why a pool is scattered, and what would open a longer run: in the words of the advisor.
import { Table, Text } from "@mantine/core";
import { useAdvice } from "../../../api/pools";
import { AddressText } from "../../../components/AddressText";
import { Loaded } from "../../../components/Loaded";
import { Panel } from "../../../components/Panel";
import { count } from "../../../words";
import classes from "../pools.module.css";

const OPENINGS = 5;

export function AdvicePanel({ namespace, name }: { namespace: string; name: string }) {
  const advice = useAdvice(namespace, name);
  return (
    <Panel title="Advice" hint="What stands in the way of longer runs, and what would help">
      <Loaded query={advice}>
        {({ problem, says, openings }) => (
          <>
            {problem && <Text>{problem}</Text>}
            <ul className={classes.sentences}>
              {says.map((sentence) => (
                <li key={sentence}>{sentence}</li>
              ))}
            </ul>
            {openings.length > 0 && (
              <Table.ScrollContainer minWidth={380} type="native" mt="sm">
                <Table verticalSpacing={4} horizontalSpacing="xs">
                  <caption className="visually-hidden">Releases that would open longer runs</caption>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Release of</Table.Th>
                      <Table.Th>opens</Table.Th>
                      <Table.Th ta="right">in use now</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {openings.slice(0, OPENINGS).map((opening) => (
                      <Table.Tr key={opening.hole.start}>
                        <Table.Td>{opening.release.map((block) => block.name).join(", ")}</Table.Td>
                        <Table.Td>
                          <AddressText range={opening.hole} /> ({count(opening.hole.count)})
                        </Table.Td>
                        <Table.Td ta="right">{count(opening.liveAddresses)}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Table.ScrollContainer>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}
