// Narrows a list down to one value of a field.
import { Select } from "@mantine/core";
import type { ListState } from "./useListState";

interface FilterSelectProps {
  list: ListState;
  /** The parameter of the page's address, and of the server. */
  name: string;
  label: string;
  options: (string | { value: string; label: string })[];
}

export function FilterSelect({ list, name, label, options }: FilterSelectProps) {
  const chosen = list.get(name);
  const known = options.some((option) => (typeof option === "string" ? option : option.value) === chosen);
  return (
    <Select
      aria-label={label}
      placeholder={label}
      // A value from a shared address may be one that is not offered.
      data={chosen === "" || known ? options : [...options, chosen]}
      value={chosen || null}
      onChange={(value) => list.set({ [name]: value ?? "" })}
      clearable
      searchable={options.length > 8}
      clearButtonProps={{ "aria-label": `Clear: ${label}` }}
      w="9rem"
      maw="100%"
    />
  );
}
