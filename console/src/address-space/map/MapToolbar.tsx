// The map's buttons, what it shows at the moment, and the way to one address.
import { ActionIcon, Button, Group, TextInput, Tooltip } from "@mantine/core";
import { IconMinus, IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { formatRange, parseAddress } from "../addresses";
import { cellInWords } from "../describe";
import type { SegmentIndex } from "../segmentIndex";
import classes from "./AddressMap.module.css";
import { zoomTo } from "./keys";
import { coarsest, fitted, gridOf, rowsInSight, zoomed, type Viewport } from "./viewport";

interface MapToolbarProps {
  index: SegmentIndex;
  view: Viewport;
  focus: number;
  onChange: (view: Viewport, focus: number) => void;
  onFind: (offset: number) => void;
}

export function MapToolbar({ index, view, focus, onChange, onFind }: MapToolbarProps) {
  const zoom = (steps: number) => {
    // Buttons zoom around what is in the middle; keys around what has the focus.
    const next = zoomTo(view, steps, middle(view, focus));
    onChange(next.view, next.focus);
  };
  const widest = view.perCell >= coarsest(view);
  return (
    <div className={classes.toolbar}>
      <Group gap={4}>
        <ZoomButton label="Zoom in" icon={IconPlus} disabled={view.perCell === 1} onClick={() => zoom(1)} />
        <ZoomButton label="Zoom out" icon={IconMinus} disabled={widest} onClick={() => zoom(-1)} />
        <Button variant="default" disabled={widest} onClick={() => onChange(fitted(view), focus)}>
          Show all
        </Button>
      </Group>
      <div className={classes.sight}>
        {cellInWords(view.perCell)} · in sight <span className="mono">{inSight(index, view)}</span>
      </div>
      <GoTo
        index={index}
        onGo={(offset) => {
          onChange(zoomed(view, 40, offset, view.height / 2), offset);
          onFind(offset);
        }}
      />
    </div>
  );
}

interface ZoomButtonProps {
  label: string;
  icon: typeof IconPlus;
  disabled: boolean;
  onClick: () => void;
}

function ZoomButton({ label, icon: Icon, disabled, onClick }: ZoomButtonProps) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size={30} aria-label={label} disabled={disabled} onClick={onClick}>
        <Icon size={15} />
      </ActionIcon>
    </Tooltip>
  );
}

function GoTo({ index, onGo }: { index: SegmentIndex; onGo: (offset: number) => void }) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const address = parseAddress(text.trim());
        const offset = address === null ? -1 : address - index.start;
        if (address === null) setWrong("Not an address");
        else if (offset < 0 || offset >= index.count) setWrong("Not in this pool");
        else onGo(offset);
      }}
    >
      <TextInput
        aria-label="Go to an address"
        placeholder="Go to 10.0.0.1"
        value={text}
        error={wrong}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setWrong("");
        }}
        w="9.5rem"
        autoComplete="off"
        spellCheck={false}
      />
    </form>
  );
}

function inSight(index: SegmentIndex, view: Viewport): string {
  const { first, end } = rowsInSight(view);
  const { perRow } = gridOf(view);
  const from = first * perRow;
  return formatRange(index.start + from, Math.min(end * perRow, view.count) - from);
}

function middle(view: Viewport, focus: number): number {
  const { first, end } = rowsInSight(view);
  const { perRow } = gridOf(view);
  const focusRow = Math.floor(focus / perRow);
  return focusRow >= first && focusRow < end ? focus : Math.floor((first + end) / 2) * perRow;
}
