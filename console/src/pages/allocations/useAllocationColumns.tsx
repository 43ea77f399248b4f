// What the list of allocations tells of each.
import { Text } from "@mantine/core";
import { useSignedIn } from "../../api/session";
import type { AllocationItem } from "../../api/types";
import { AddressText } from "../../components/AddressText";
import { AllocationState } from "../../components/AllocationState";
import { GuardedButton, unless } from "../../components/GuardedButton";
import { ObjectLink } from "../../components/ObjectLink";
import { Time } from "../../components/Time";
import { OnlyNarrow } from "../../components/table/OnlyNarrow";
import type { Column } from "../../components/table/DataTable";
import { count, typeInWords } from "../../words";

export function useAllocationColumns(onRelease: (item: AllocationItem) => void): Column<AllocationItem>[] {
  const { permissions } = useSignedIn();
  return [
    {
      title: "Allocation",
      sort: "name",
      cell: ({ namespace, name, role, pinned, state }) => (
        <>
          <ObjectLink link={{ kind: "allocation", namespace, name }} />
          <Text fz="xs" c="dimmed">
            {[role, pinned && "hand-picked"].filter(Boolean).join(", ")}
          </Text>
          <OnlyNarrow>
            <AllocationState state={state} plain />
          </OnlyNarrow>
        </>
      ),
    },
    {
      title: "State",
      sort: "state",
      from: "narrow",
      cell: ({ state, message, start }) => (
        <>
          <AllocationState state={state} plain />
          {start === null && message && (
            <Text fz="xs" c="dimmed" lineClamp={2} title={message} maw="13rem">
              {message}
            </Text>
          )}
        </>
      ),
    },
    {
      title: "Addresses",
      sort: "start",
      cell: ({ start, end, requested }) =>
        start !== null && end !== null ? (
          <AddressText range={{ start, end }} />
        ) : (
          <Text fz="sm" c="dimmed">
            {requested === null ? "asks for the usual number" : `asks for ${count(requested)}`}
          </Text>
        ),
    },
    { title: "Count", sort: "count", align: "right", from: "medium", cell: (item) => count(item.count) },
    {
      title: "For",
      sort: "type",
      from: "medium",
      cell: ({ type }) => <span style={{ whiteSpace: "nowrap" }}>{typeInWords(type)}</span>,
    },
    {
      title: "Tenant",
      sort: "tenant",
      from: "narrow",
      cell: ({ tenantNamespace: namespace, tenant: name }) => (
        <>
          <ObjectLink link={{ kind: "tenant", namespace, name }} />
          <Text fz="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
            {namespace}
          </Text>
        </>
      ),
    },
    {
      title: "Pool",
      sort: "pool",
      from: "medium",
      cell: ({ namespace, pool }) => <ObjectLink link={{ kind: "pool", namespace, name: pool }} />,
    },
    { title: "Since", from: "wide", cell: ({ allocatedAt, createdAt }) => <Time at={allocatedAt ?? createdAt} /> },
    {
      title: "Actions",
      silent: true,
      align: "right",
      from: "narrow",
      cell: (item) => (
        <GuardedButton
          variant="subtle"
          reason={
            item.state === "released"
              ? `${item.name} was released already.`
              : unless(permissions.releaseAllocations, "release allocations")
          }
          aria-label={`Release ${item.name}`}
          onClick={() => onRelease(item)}
        >
          Release
        </GuardedButton>
      ),
    },
  ];
}
