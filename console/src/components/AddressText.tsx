// Addresses in a text, each a link to whose it is.
import { Anchor, Text } from "@mantine/core";
import { Link } from "react-router";
import type { AddressRange } from "../api/types";
import { paths } from "../paths";
import { rangeInWords } from "../words";

export function AddressText({ range }: { range: Pick<AddressRange, "start" | "end"> | null | undefined }) {
  if (!range)
    return (
      <Text component="span" c="dimmed" fz="inherit">
        none yet
      </Text>
    );
  return (
    <Anchor component={Link} to={paths.address(asked(range))} fz="inherit" className="mono">
      {rangeInWords(range.start, range.end)}
    </Anchor>
  );
}

/** As the server takes it. */
function asked({ start, end }: Pick<AddressRange, "start" | "end">): string {
  return start === end ? start : `${start}-${end}`;
}
