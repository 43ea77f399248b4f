import js from "@eslint/js";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config({ ignores: ["dist", "src/api/schema.d.ts"] }, js.configs.recommended, {
  files: ["**/*.{ts,tsx}"],
  extends: [
    tseslint.configs.strictTypeChecked,
    tseslint.configs.stylisticTypeChecked,
    a11y.flatConfigs.strict,
    hooks.configs.flat["recommended-latest"],
  ],
  languageOptions: { parserOptions: { projectService: true } },
  rules: {
    "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    // Handlers of events may be asynchronous; what they await shows its own failures.
    "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: false }],
    "@typescript-eslint/no-confusing-void-expression": "off",
  },
});
