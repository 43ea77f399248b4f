// Colours and sizes of the console. Two rules stand behind every choice here: text has a contrast of 4.5:1 or more on
// what it stands on, and colour is never the only thing that tells two states apart.
import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const ink: MantineColorsTuple = [
  "#eef2fd",
  "#dbe3fa",
  "#b4c4f2",
  "#8ca4ea",
  "#6a88e2",
  "#4d6fd8",
  "#3557c4",
  "#2b48a6",
  "#223a86",
  "#192b64",
];

const slate: MantineColorsTuple = [
  "#d7dbe2",
  "#b8bec9",
  "#9aa2b1",
  "#6b7484",
  "#4a5261",
  "#353c49",
  "#272d38",
  "#1b2029",
  "#151920",
  "#0f1218",
];

export const theme = createTheme({
  primaryColor: "ink",
  primaryShade: { light: 6, dark: 5 },
  colors: { ink, dark: slate },
  defaultRadius: "sm",
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.375rem", lineHeight: "1.3" },
      h2: { fontSize: "0.9375rem", lineHeight: "1.4" },
      h3: { fontSize: "0.875rem", lineHeight: "1.4" },
    },
  },
  components: {
    Button: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "xs" } },
    NumberInput: { defaultProps: { size: "xs" } },
    PasswordInput: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs" } },
    Textarea: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    // The placeholder that would take the focus first has no place in a menu, says ARIA; the first item takes it.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Tooltip: { defaultProps: { openDelay: 150, events: { hover: true, focus: true, touch: true } } },
    Anchor: { defaultProps: { underline: "always" } },
    Modal: {
      defaultProps: {
        centered: true,
        styles: { title: { fontSize: "0.9375rem", fontWeight: 600 } },
        overlayProps: { backgroundOpacity: 0.4 },
        closeButtonProps: { "aria-label": "Close" },
        // A dialog's title bar is no second banner of the page.
        attributes: { header: { role: "presentation" } },
      },
    },
  },
});

// The library's own grey for secondary text is too faint.
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#ffffff",
    "--mantine-color-text": "#1c2129",
    "--mantine-color-dimmed": "#59616f",
    "--mantine-color-placeholder": "#6b7382",
    "--mantine-color-anchor": "#2b48a6",
    "--mantine-color-default-border": "#c9ced8",
    "--mantine-color-error": "#b3261e",
  },
  dark: {
    "--mantine-color-body": "#0f1218",
    "--mantine-color-text": "#e4e7ec",
    "--mantine-color-dimmed": "#9fa7b5",
    "--mantine-color-placeholder": "#8a93a3",
    "--mantine-color-anchor": "#a5b8f2",
    "--mantine-color-default-border": "#3a4250",
    "--mantine-color-error": "#ff9a90",
  },
});

/** The nonce that the server put into the page; styles without it are refused. */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}
