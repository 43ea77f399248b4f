// Takes a block out of what the pool hands out, or gives one back.
import { ActionIcon, Button, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useEditPool, usePoolEditPreview } from "../../../api/pools";
import type { PoolDetail } from "../../../api/types";
import classes from "../pools.module.css";
import { FormDialog } from "./FormDialog";
import { PoolPreviewView } from "./PoolPreviewView";
import { PREVIEW_PAUSE_MS, told } from "./told";

interface Block {
  cidr: string;
  description: string;
}

export function ReserveDialog({ detail, onClose }: { detail: PoolDetail; onClose: () => void }) {
  const { namespace, name, resourceVersion } = detail.pool;
  const before = detail.reserved.map(({ cidr, description }) => ({ cidr, description }));
  const [blocks, setBlocks] = useState<Block[]>([...before, { cidr: "", description: "" }]);
  const filled = blocks.filter(({ cidr }) => cidr.trim() !== "");
  const changed = JSON.stringify(filled) !== JSON.stringify(before);
  const body = changed
    ? { reserved: filled.map(({ cidr, description }) => ({ cidr: cidr.trim(), description })) }
    : null;
  const [asked] = useDebouncedValue(body, PREVIEW_PAUSE_MS);
  const preview = usePoolEditPreview(namespace, name, asked);
  const edit = useEditPool(namespace, name);
  const current = JSON.stringify(asked) === JSON.stringify(body) && !preview.isPlaceholderData;
  return (
    <FormDialog
      title={`Reserve addresses of ${name}`}
      confirm="Save"
      blocked={body === null || !current || preview.data?.allowed !== true}
      busy={edit.isPending}
      error={edit.error}
      onClose={onClose}
      onSubmit={() => {
        if (body)
          edit.mutate({ body, resourceVersion }, { onSuccess: told(`${name} reserves other addresses now`, onClose) });
      }}
    >
      <ReservedRows blocks={blocks} onChange={setBlocks} />
      <PoolPreviewView
        query={preview}
        hint="Name a network such as 10.40.0.0/28, and what it would do is shown here."
      />
    </FormDialog>
  );
}

export function ReservedRows({ blocks, onChange }: { blocks: Block[]; onChange: (blocks: Block[]) => void }) {
  const change = (index: number, values: Partial<Block>) =>
    onChange(blocks.map((block, at) => (at === index ? { ...block, ...values } : block)));
  return (
    <fieldset className={classes.rows} style={{ border: "none", margin: 0, padding: 0 }}>
      <legend className="visually-hidden">Reserved networks</legend>
      {blocks.map((block, index) => (
        <div key={index} className={classes.row}>
          <TextInput
            label={index === 0 ? "Network" : undefined}
            aria-label={`Network ${index + 1}`}
            placeholder="10.40.0.0/28"
            value={block.cidr}
            onChange={(event) => change(index, { cidr: event.currentTarget.value })}
            spellCheck={false}
          />
          <TextInput
            label={index === 0 ? "What for" : undefined}
            aria-label={`What network ${index + 1} is for`}
            placeholder="gateway and switches"
            value={block.description}
            onChange={(event) => change(index, { description: event.currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={30}
            aria-label={`Do not reserve network ${index + 1}`}
            onClick={() => onChange(blocks.filter((_, at) => at !== index))}
          >
            <IconTrash size={15} />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="subtle"
        leftSection={<IconPlus size={14} />}
        justify="flex-start"
        onClick={() => onChange([...blocks, { cidr: "", description: "" }])}
      >
        {blocks.length === 0 ? "Reserve a block" : "Reserve another"}
      </Button>
    </fieldset>
  );
}
