/**
 * Lint rules. Rules about who imports whom come from the table that the architecture test reads, so
 * that an editor says them first.
 */
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";
import {
  edgeMembers,
  forbiddenFolders,
  processEdges,
  folderRanks,
} from "./test/architecture/import-rules.ts";

const configFiles = ["*.config.ts", "*.config.js"];

/** A name that starts with _ says that its place is needed and its value is not. */
const unusedVars = { argsIgnorePattern: "^_", varsIgnorePattern: "^_" };

const noDefaultExport = {
  selector: "ExportDefaultDeclaration",
  message: "Export by name.",
};

const noUrlPathname = {
  selector: "MemberExpression[property.name='pathname'] > NewExpression[callee.name='URL']",
  message: "A path is fileURLToPath(url): a pathname has spaces and umlauts in percent form.",
};

const noMapOfAllCharacters = {
  selector: "Property[key.name=/^(unit|stringUnit)$/][value.value='binary']",
  message: "Take anyCharacter of test/support/properties/property.ts.",
};

/** For each folder but the topmost, the folders that it must not import. */
const importRules = Object.keys(folderRanks)
  .map((folder) => ({ folder, forbidden: forbiddenFolders(folder) }))
  .filter(({ forbidden }) => forbidden.length > 0)
  .map(({ folder, forbidden }) => ({
    files: [`worker/${folder}/**/*.ts`],
    rules: {
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            {
              regex: `^(\\.\\./)+(${forbidden.join("|")})/`,
              message: `Folder ${folder} imports folders of a lower rank only; see test/architecture/import-rules.ts.`,
            },
          ],
        },
      ],
    },
  }));

export default defineConfig(
  globalIgnores(["dist/", "coverage/"]),
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "no-restricted-syntax": ["error", noDefaultExport, noUrlPathname],
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-import-type-side-effects": "error",
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/no-non-null-assertion": "error",
      "@typescript-eslint/prefer-readonly": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      // Objects are made by functions here and their methods do not need a receiver; classes keep
      // state in #fields.
      "@typescript-eslint/unbound-method": "off",
      // An implementation of a contract may have nothing to wait for.
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/no-unused-vars": ["error", unusedVars],
    },
  },
  {
    files: ["worker/**/*.ts", "harness/**/*.ts"],
    ignores: [...processEdges],
    rules: {
      "no-restricted-properties": [
        "error",
        ...edgeMembers.map((property) => ({
          object: "process",
          property,
          message: `Only ${processEdges.join(" and ")} may touch it; take it as a parameter.`,
        })),
      ],
    },
  },
  ...importRules,
  {
    // What tools and agents say is text there, and the content security policy has no inline styles.
    files: ["console/**/*.tsx"],
    rules: {
      "no-restricted-syntax": [
        "error",
        noDefaultExport,
        noUrlPathname,
        {
          selector: "JSXAttribute[name.name=/^(style|dangerouslySetInnerHTML|srcdoc)$/]",
          message: "Texts of others are no markup, and styles are classes.",
        },
      ],
    },
  },
  {
    files: ["test/**/*.ts"],
    rules: {
      "no-restricted-syntax": ["error", noDefaultExport, noUrlPathname, noMapOfAllCharacters],
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/explicit-module-boundary-types": "off",
      // What `expect.any()` and its like return.
      "@typescript-eslint/no-unsafe-assignment": "off",
    },
  },
  {
    files: ["**/*.{js,mjs}"],
    languageOptions: {
      globals: {
        AbortController: false,
        Atomics: false,
        Buffer: false,
        SharedArrayBuffer: false,
        TextDecoder: false,
        URL: false,
        console: false,
        process: false,
      },
    },
    rules: { "no-undef": "error", "no-unused-vars": ["error", unusedVars] },
  },
  { files: configFiles, rules: { "no-restricted-syntax": "off" } },
);
