// In place of a list that its filters leave empty.
import { Button } from "@mantine/core";
import { EmptyState } from "../EmptyState";
import type { ListState } from "./useListState";

interface NothingFitsProps {
  list: ListState;
  filters: readonly string[];
  title: string;
}

export function NothingFits({ list, filters, title }: NothingFitsProps) {
  const clear = () => list.set(Object.fromEntries(filters.map((name) => [name, ""])));
  return (
    <EmptyState
      title={title}
      action={
        <Button variant="default" onClick={clear}>
          {filters.length === 1 ? "Clear the filter" : "Clear the filters"}
        </Button>
      }
    />
  );
}
