// What a dialog does when its work is done: it says so, and closes.
import { notifications } from "@mantine/notifications";
import type { Written } from "../../../api/types";

export const PREVIEW_PAUSE_MS = 250;

/** For `onSuccess`: warnings of the server stay in sight until the user closes them. */
export function told(message: string, close: () => void): (written: Written | undefined) => void {
  return (written) => {
    notifications.show({ message });
    for (const warning of written?.warnings ?? []) {
      notifications.show({ color: "yellow", title: "Mind this", message: warning, autoClose: false });
    }
    close();
  };
}
