// Gives the focus back to what had it before a dialog came, also where the dialog is taken away without being closed.
import { useEffect, useState } from "react";

export function useFocusBack(): void {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // A moment later: by then it is known whether another element took the focus.
      setTimeout(() => {
        if (document.activeElement !== document.body) return;
        const there = before instanceof HTMLElement && before !== document.body && before.isConnected;
        const target = there ? before : document.querySelector("h1");
        target?.focus({ preventScroll: true });
      });
    },
    [before],
  );
}
