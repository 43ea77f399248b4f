// Files that the server makes. A link cannot ask for CSV, as it cannot name what it accepts.
import { problemOf } from "./problem";

export async function downloadCsv(address: string, filename: string): Promise<void> {
  const response = await fetch(address, { headers: { Accept: "text/csv" }, credentials: "same-origin" });
  if (!response.ok) throw await problemOf(response);
  const file = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = file;
  link.download = filename;
  link.click();
  URL.revokeObjectURL(file);
}
