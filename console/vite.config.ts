import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` serves the console itself and passes everything else on to a running Butler:
// BUTLER_SERVER=https://127.0.0.1:8443 npm run dev
const server = process.env.BUTLER_SERVER ?? "http://127.0.0.1:8090";
const passOn = { target: server, secure: false, changeOrigin: true, ws: true };

export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/api": passOn, "/link": passOn } },
  build: {
    // The console's CSP allows no inlined files.
    assetsInlineLimit: 0,
    target: "es2023",
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // Libraries change seldom: apart from our own code, browsers keep them over upgrades of Butler.
        codeSplitting: {
          groups: [
            { name: "charts", test: /node_modules\/(recharts|d3-|victory-vendor|@mantine\/charts)/, priority: 2 },
            { name: "react", test: /node_modules\/(react|react-dom|react-router|scheduler)\//, priority: 1 },
            { name: "mantine", test: /node_modules\/(@mantine|@floating-ui)\// },
          ],
        },
      },
    },
  },
  test: { include: ["src/**/*.test.ts"] },
});
