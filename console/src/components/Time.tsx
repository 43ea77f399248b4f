// A time as people say it, with the exact one on hover; it goes on counting while it is shown.
import { Tooltip } from "@mantine/core";
import { useEffect, useState } from "react";
import { ago, fullTime } from "../words";

export function Time({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span>–</span>;
  return (
    <Tooltip label={fullTime(at)}>
      <time dateTime={at}>{ago(at, now)}</time>
    </Tooltip>
  );
}

const TICK_MS = 10_000;

function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}
