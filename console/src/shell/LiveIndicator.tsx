// Says whether the page is up to date by itself, in words and with a dot.
import { Tooltip } from "@mantine/core";
import type { LiveState } from "../api/live/connection";
import { useLiveState } from "../api/live/useLive";
import classes from "./Shell.module.css";

const SAYS: Record<LiveState, { word: string; meaning: string }> = {
  live: { word: "Live", meaning: "Changes show within half a second" },
  connecting: { word: "Connecting", meaning: "The live stream is being opened" },
  reconnecting: { word: "Reconnecting", meaning: "The live stream broke off; what you see may be a little old" },
  offline: { word: "Offline", meaning: "The server does not answer; what you see is from before. It is tried again." },
};

export function LiveIndicator() {
  const state = useLiveState();
  const { word, meaning } = SAYS[state];
  return (
    <Tooltip label={meaning} multiline maw={260}>
      <span className={classes.live} data-state={state} role="status">
        <span className={classes.dot} aria-hidden />
        <span className={classes.liveWords}>{word}</span>
      </span>
    </Tooltip>
  );
}
