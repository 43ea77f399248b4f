// Butler's web console. Where things are:
//
//   main.tsx, routes.tsx    start, and which address shows which page
//   theme.ts, styles.css    colours and sizes, light and dark
//   paths.ts, words.ts      addresses of pages; numbers, times and states in words
//   api/                    everything that talks to the server: a file of hooks for each subject;
//                           api/live keeps what is loaded up to date; schema.d.ts is generated
//   shell/                  what is around every page: sidebar, top bar, command palette, login
//   components/             parts that several pages use (Page, Panel, DataTable, Loaded, ConfirmDialog ...)
//   address-space/          bars, maps and strips of addresses, and the arithmetic behind them
//   pages/                  a folder for each page
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router/dom";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "@mantine/spotlight/styles.css";
import "./styles.css";
import { queryClient } from "./queryClient";
import { router } from "./routes";
import { cssVariables, styleNonce, theme } from "./theme";

// Not again sooner than this: what is missing then is missing for good.
const FRESH_START_MS = 30_000;

// For the library that keeps the page from scrolling under a dialog, which adds a style of its own.
setNonce(styleNonce());

// After an upgrade of Butler the files of the old console are gone: a page that is opened then comes with a fresh start.
window.addEventListener("vite:preloadError", () => {
  const last = Number(sessionStorage.getItem("fresh-start"));
  if (Date.now() - last < FRESH_START_MS) return;
  sessionStorage.setItem("fresh-start", String(Date.now()));
  window.location.reload();
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element with the id root");

createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={queryClient}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
