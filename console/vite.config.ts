import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// `npm run dev` serves the console itself and passes everything else on to a running Butler:
// BUTLER_SERVER=https://127.0.0.1:8443 npm run dev
const server = process.env.BUTLER_SERVER ?? "http://127.0.0.1:8090";
const passOn = { target: server, secure: false, changeOrigin: true, ws: true };

/** Puts a .br and a .gz beside each file that is worth it: the server sends them as they are. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async writeBundle({ dir = "dist" }) {
      for (const file of await readdir(join(dir, "assets"))) {
        const content = await readFile(join(dir, "assets", file));
        if (!/\.(js|css|svg)$/.test(file) || content.length < 1024) continue;
        const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
        await writeFile(join(dir, "assets", `${file}.br`), brotliCompressSync(content, quality));
        await writeFile(join(dir, "assets", `${file}.gz`), gzipSync(content));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), compressed()],
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
