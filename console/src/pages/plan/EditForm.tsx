// Another shape of a pool, tried before anything else is asked of it.
import { TagsInput, TextInput } from "@mantine/core";
import { AskPanel } from "./AskPanel";
import { PoolSelect } from "./PoolSelect";
import type { EditQuestion } from "./question";

interface EditFormProps {
  asked: EditQuestion | null;
  onChange: (asked: EditQuestion | null) => void;
}

export function EditForm({ asked, onChange }: EditFormProps) {
  return (
    <AskPanel
      title="Edit a pool first"
      hint="Who would be stranded, and would it help? What is left empty stays as it is."
      on={asked !== null}
      onTurn={(on) => onChange(on ? { pool: "", cidr: "", windows: [], reserve: [] } : null)}
    >
      {asked && (
        <>
          <PoolSelect value={asked.pool} onChange={(pool) => onChange({ ...asked, pool })} />
          <TextInput
            label="Network"
            description="Such as 10.60.0.0/21."
            value={asked.cidr}
            onChange={(event) => onChange({ ...asked, cidr: event.currentTarget.value.trim() })}
            autoComplete="off"
            spellCheck={false}
          />
          <TagsInput
            size="xs"
            label="Windows"
            description="What tenants may get, such as 10.60.0.32-10.60.3.254; Enter adds another."
            value={asked.windows}
            onChange={(windows) => onChange({ ...asked, windows })}
            clearable
            clearButtonProps={{ "aria-label": "Clear the windows" }}
          />
          <TagsInput
            size="xs"
            label="Reserve, too"
            description="Networks to keep back, such as 10.60.2.0/24; Enter adds another."
            value={asked.reserve}
            onChange={(reserve) => onChange({ ...asked, reserve })}
            clearable
            clearButtonProps={{ "aria-label": "Clear what is reserved" }}
          />
        </>
      )}
    </AskPanel>
  );
}
