// Where in a long list one is, and the way on.
import { Button, Group, Text } from "@mantine/core";
import type { Page } from "../../api/types";
import { count } from "../../words";
import type { ListState } from "./useListState";

interface PagerProps {
  page: Page<unknown>;
  list: Pick<ListState, "page" | "toNext" | "toPrevious">;
  limit: number;
}

export function Pager({ page, list, limit }: PagerProps) {
  const { next } = page;
  const first = list.page * limit + 1;
  const last = first + page.items.length - 1;
  return (
    <Group justify="space-between" px="sm" py={6} gap="xs">
      <Text fz="xs" c="dimmed" className="numbers" role="status">
        {last < first ? "Nothing on this page" : `${count(first)}–${count(last)} of ${count(page.total)}`}
      </Text>
      {(list.page > 0 || next !== null) && (
        <Group gap="xs">
          <Button variant="default" disabled={list.page === 0} onClick={list.toPrevious}>
            Previous
          </Button>
          <Button variant="default" disabled={next === null} onClick={() => next !== null && list.toNext(next)}>
            Next
          </Button>
        </Group>
      )}
    </Group>
  );
}
