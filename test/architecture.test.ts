/**
 * Checks the structure of the code: imports between folders, the homes of packages, and the
 * files that may touch the process.
 */
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  edgeMembers,
  importViolation,
  lazyPackages,
  packageHomes,
  packageViolation,
  pageViolation,
  processEdges,
  folderOf,
  folderRanks,
} from "./architecture/import-rules.ts";
import {
  findCycles,
  packageOf,
  packagesLoadedWith,
  parseSourceFile,
  readSourceFiles,
  pythonImports,
  readTexts,
  resolveRelative,
  root,
  type SourceFile,
} from "./architecture/source-files.ts";
import { ordinaryWords, retiredNames, retiredWords, retiredWordsIn } from "./architecture/words.ts";

const worker = readSourceFiles("worker/**/*.ts");
const harness = readSourceFiles("harness/**/*.ts");
const toolRunner = readSourceFiles("tool-runner/**/*.{mjs,js,ts,py}");
const page = readSourceFiles("console/**/*.{ts,tsx}");
const programs = [...worker, ...harness];
const everything = [
  ...programs,
  ...toolRunner,
  ...page,
  ...readSourceFiles("{bin,scripts}/**/*.{mjs,ts}"),
];

const maxColumns = 100;
/** Files of one folder, which a reader takes in at once. */
const maxFilesInFolder = 15;

/** Lines such as `worker/broker/x.ts:12: …`, empty when every file keeps the rule. */
function violations<File extends Pick<SourceFile, "path">>(
  files: readonly File[],
  check: (file: File) => readonly (string | undefined)[],
): readonly string[] {
  return files.flatMap((file) =>
    check(file).flatMap((wrong) => (wrong === undefined ? [] : `${file.path}${wrong}`)),
  );
}

describe("the files that are checked", () => {
  test("are all there", () => {
    expect(programs.map(({ path }) => path)).toEqual(expect.arrayContaining([...processEdges]));
    expect(toolRunner).not.toEqual([]);
    expect(page.map(({ path }) => path)).toContain("console/main.tsx");
  });
});

describe("imports", () => {
  test("lead downwards, never between peers, and into an adapter only from its loader", () => {
    expect(
      violations([...programs, ...toolRunner], (file) =>
        file.imports.map(({ specifier, line }) => {
          const target = resolveRelative(file.path, specifier);
          const wrong = target === undefined ? undefined : importViolation(file.path, target);
          return wrong && `:${line}: imports ${specifier}: ${wrong}`;
        }),
      ),
    ).toEqual([]);
  });

  test("reach an npm package from the one place that knows it", () => {
    expect(
      violations(programs, (file) =>
        file.imports.map(({ specifier, line }) => {
          if (/^(node:|\.)/.test(specifier)) return undefined;
          const wrong = packageViolation(file.path, packageOf(specifier));
          return wrong && `:${line}: imports ${specifier}: ${wrong}`;
        }),
      ),
    ).toEqual([]);
  });

  test("leave the page of the console preact and the types of its contract", () => {
    expect(
      violations(page, (file) =>
        file.imports.map(({ specifier, line, isTypeOnly }) => {
          const target = resolveRelative(file.path, specifier);
          const wrong = pageViolation(specifier, target, isTypeOnly);
          return wrong && `:${line}: imports ${specifier}: ${wrong}`;
        }),
      ),
    ).toEqual([]);
  });

  test("load nothing with the worker that it may not need", () => {
    const loaded = packagesLoadedWith("worker/command-line.ts", worker);
    expect([...loaded.keys()]).toContain("pino");
    expect(lazyPackages.flatMap((name) => loaded.get(name) ?? [])).toEqual([]);
  });

  test("load no package with the library before it opens a backend", () => {
    for (const entry of ["worker/runtime.ts", "worker/runtime/testing.ts"])
      expect(packagesLoadedWith(entry, worker)).toEqual(new Map());
  });

  test("bring nothing but Node's own modules into the sandbox of a call", () => {
    // What describes a tool is loaded for that only.
    const ofCalls = toolRunner.filter(({ path }) => !path.includes("/describe/"));
    expect(
      violations(ofCalls, (file) =>
        file.imports.map(({ specifier, line }) =>
          /^(node:|\.)/.test(specifier) ? undefined : `:${line}: imports ${specifier}`,
        ),
      ),
    ).toEqual([]);
  });

  test("form no circle", () => {
    const runner = toolRunner
      .filter(({ path }) => path.startsWith("tool-runner/python/"))
      .map((file) => ({ ...file, imports: pythonImports(file.text) }));
    const cycles = [...findCycles(programs), ...findCycles(runner), ...findCycles(page)];
    expect(cycles.map((cycle) => cycle.join(" -> "))).toEqual([]);
  });
});

describe("package.json", () => {
  test("depends on the packages that have a home, and no others", () => {
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      dependencies: Record<string, string>;
    };
    expect(Object.keys(packageHomes).sort()).toEqual(Object.keys(manifest.dependencies).sort());
  });
});

describe("files", () => {
  test("leave the environment, signals and the exit to the two edges", () => {
    expect(
      violations(programs, (file) =>
        file.processMembers.map(({ member, line }) =>
          edgeMembers.includes(member) && !processEdges.includes(file.path)
            ? `:${line}: uses process.${member}, which belongs to ${processEdges.join(" and ")}`
            : undefined,
        ),
      ),
    ).toEqual([]);
  });

  test("belong to a folder that has a rank", () => {
    expect(
      violations(worker, ({ path }) => {
        const folder = folderOf(path);
        const isKnown = folder === undefined || Object.hasOwn(folderRanks, folder);
        return [
          isKnown
            ? undefined
            : `: give folder ${folder} a rank in test/architecture/import-rules.ts`,
        ];
      }),
    ).toEqual([]);
  });

  test("open with a comment on what they are for", () => {
    const opening = /^(#![^\n]*\n)?\s*(\/\*\*|\/\/|#|"""|r?""")/;
    expect(
      violations(everything, ({ text }) => [
        opening.test(text) ? undefined : ": does not open with a comment",
      ]),
    ).toEqual([]);
  });

  test("have comments of at most 100 columns, but for tables and examples", () => {
    const others = readTexts("{test,bench}/**/*.ts", "{attacks,examples}/**/*.py");
    const ofScripts = /^\s*(?:\/\/|\/?\*)(?!\s*\||\s\s)/;
    const ofPython = /^\s*(?:# |""")/;
    const isWide = (line: string, path: string): boolean =>
      line.length > maxColumns && (path.endsWith(".py") ? ofPython : ofScripts).test(line);
    expect(
      violations([...everything, ...others], ({ path, text }) =>
        text
          .split("\n")
          .map((line, index) =>
            isWide(line, path) ? `:${index + 1}: is a wide comment` : undefined,
          ),
      ),
    ).toEqual([]);
  });

  test("use the field's words", () => {
    expect(
      violations(
        [...everything, ...readTexts("bench/**/*.ts", "attacks/**/*.py")],
        ({ path, text }) =>
          text
            .split("\n")
            .flatMap((line, index) =>
              retiredWordsIn(line, path).map((word) => `:${index + 1}: ${word}`),
            ),
      ),
    ).toEqual([]);
  });

  test("are few enough in a folder to be found in its list", () => {
    const files = [...everything, ...readTexts("test/**/*.ts")];
    const counts = Map.groupBy(files, ({ path }) => dirname(path));
    const crowded = [...counts].filter(([, files]) => files.length > maxFilesInFolder);
    expect(crowded.map(([folder, files]) => `${folder}: ${files.length} files`)).toEqual([]);
  });

  test("of test/full have its tag, so that none runs in the ordinary run", () => {
    const tagged = /^\/\*\*\n(?: \*.*\n)*? \* @module-tag full\n(?: \*.*\n)*? \*\/\n/;
    expect(
      violations(readTexts("test/full/**/*.test.ts"), ({ text }) => [
        tagged.test(text) ? undefined : ": its head has no `@module-tag full`",
      ]),
    ).toEqual([]);
  });

  test("are named in kebab case and are no barrels", () => {
    expect(
      violations([...programs, ...page], ({ path }) => [
        /^[a-z0-9-]+\.tsx?$/.test(basename(path)) ? undefined : ": is not in kebab case",
        basename(path) === "index.ts" ? ": is a barrel" : undefined,
      ]),
    ).toEqual([]);
  });

  test("export by name", () => {
    expect(
      violations(everything, ({ defaultExportLines }) =>
        defaultExportLines.map((line) => `:${line}: exports a default`),
      ),
    ).toEqual([]);
  });
});

describe("the rules themselves", () => {
  test("have each word in one table", () => {
    const words = [retiredWords, retiredNames, ordinaryWords].flatMap(Object.keys);
    expect(words).toEqual([...new Set(words)]);
  });

  test("find retired words, in names too, and no parts of other words", () => {
    expect(retiredWordsIn("const toolShelf = journal;")).toEqual([
      "shelf: use pool",
      "journal: use record",
    ]);
    expect(retiredWordsIn("new Slots(), hasBegun")).toEqual([
      "Slots: use Semaphore",
      "begun: use started",
    ]);
    expect(retiredWordsIn("shelfish defaultSlots ballot")).toEqual([]);
    expect(retiredWordsIn("  // Turns a text into lines.")).toEqual([]);
  });

  test.each([
    ["worker/broker/open.ts", "worker/manifest/catalog.ts", /peers/],
    ["worker/protocol/topics.ts", "worker/telemetry/logger.ts", /peers/],
    ["worker/support/semaphore.ts", "worker/protocol/errors.ts", /below/],
    ["worker/sandbox/backends.ts", "worker/runners/runner.ts", /below/],
    ["worker/invocation/invoker.ts", "worker/wiring/calls.ts", /below/],
    ["worker/wiring/calls.ts", "worker/worker.ts", /of the process/],
    ["worker/invocation/invoker.ts", "worker/artifacts/memory/store.ts", /adapters of artifacts/],
    ["worker/broker/amqp/broker.ts", "worker/broker/dev/wire.ts", /adapters of broker/],
    ["worker/protocol/topics.ts", "harness/agent.ts", /outside worker/],
    ["harness/agent.ts", "worker/invocation/invoker.ts", /harness may import/],
    ["harness/demo/demo.ts", "worker/wiring/calls.ts", /harness may import/],
    ["harness/tool/run.ts", "worker/worker.ts", /harness may import/],
    ["tool-runner/node/main.mjs", "worker/support/json/json.ts", /stands alone/],
  ])("%s must not import %s", (importer, target, reason) => {
    expect(importViolation(importer, target)).toMatch(reason);
  });

  test.each([
    ["worker/broker/broker.ts", "worker/support/clock.ts"],
    ["worker/broker/dev/session.ts", "worker/broker/dev/wire.ts"],
    ["worker/broker/dev/session.ts", "worker/broker/broker.ts"],
    ["worker/broker/open.ts", "worker/broker/dev/session.ts"],
    ["worker/sandbox/registry.ts", "worker/sandbox/bubblewrap/backend.ts"],
    ["worker/runners/python.ts", "worker/sandbox/sandbox.ts"],
    ["worker/wiring/sandboxes.ts", "worker/sandbox/bubblewrap/backend.ts"],
    ["worker/wiring/calls.ts", "worker/config/config.ts"],
    ["worker/worker.ts", "worker/wiring/calls.ts"],
    ["harness/cli.ts", "harness/demo/demo.ts"],
    ["harness/agent.ts", "worker/protocol/topics.ts"],
    ["harness/tool/local-invoker.ts", "worker/wiring/foundation.ts"],
    ["tool-runner/node/main.mjs", "tool-runner/node/context.mjs"],
  ])("%s may import %s", (importer, target) => {
    expect(importViolation(importer, target)).toBeUndefined();
  });

  test("keep the page of the console to itself", () => {
    expect(pageViolation("preact/hooks", undefined, false)).toBeUndefined();
    expect(pageViolation("./b.ts", "console/b.ts", false)).toBeUndefined();
    expect(
      pageViolation("../worker/console/api.ts", "worker/console/api.ts", true),
    ).toBeUndefined();
    expect(pageViolation("../worker/console/api.ts", "worker/console/api.ts", false)).toMatch(
      /types/,
    );
    expect(pageViolation("../worker/main.ts", "worker/main.ts", true)).toMatch(/types/);
    expect(pageViolation("preactive", undefined, false)).toMatch(/preact only/);
    expect(pageViolation("zod", undefined, true)).toMatch(/preact only/);
  });

  test("know a package by its home", () => {
    expect(packageViolation("worker/support/json/yaml-document.ts", "yaml")).toBeUndefined();
    expect(packageViolation("worker/config/config.ts", "zod")).toBeUndefined();
    expect(packageViolation("worker/broker/open.ts", "yaml")).toMatch(/worker\/support/);
    expect(packageViolation("worker/broker/open.ts", "left-pad")).toMatch(/no folder/);
  });

  test("see every kind of import, and which of them are types", () => {
    const { imports } = parseSourceFile(
      "worker/x.ts",
      [
        `import a from "a";`,
        `import type { B } from "b";`,
        `import { type C } from "c";`,
        `import "d";`,
        `export { e } from "e";`,
        `export type { F } from "f";`,
        `type G = import("g").G;`,
        `const h = await import("h");`,
      ].join("\n"),
    );
    expect(imports.filter(({ isLazy }) => isLazy).map(({ specifier }) => specifier)).toEqual(["h"]);
    expect(imports.map((found) => [found.specifier, found.line, found.isTypeOnly])).toEqual([
      ["a", 1, false],
      ["b", 2, true],
      ["c", 3, false],
      ["d", 4, false],
      ["e", 5, false],
      ["f", 6, true],
      ["g", 7, true],
      ["h", 8, false],
    ]);
  });

  test("see every way to a member of process", () => {
    const { processMembers } = parseSourceFile(
      "worker/x.ts",
      [
        `process.exit(1);`,
        `process["env"];`,
        `const { on: listen } = process;`,
        `import { env as e } from "node:process";`,
      ].join("\n"),
    );
    expect(processMembers).toEqual([
      { member: "exit", line: 1 },
      { member: "env", line: 2 },
      { member: "on", line: 3 },
      { member: "env", line: 4 },
    ]);
  });

  test("see a default export in each of its forms", () => {
    const text = "export default 1;\nexport default function f() {}\nexport default class {}";
    expect(parseSourceFile("worker/x.ts", text).defaultExportLines).toEqual([1, 2, 3]);
  });

  test("see the relative imports of Python", () => {
    const text =
      "from .a import b\n    from ..c.d import e\nfrom . import f, g  # noqa\nimport os\n";
    expect(pythonImports(text).map(({ specifier, line }) => [specifier, line])).toEqual([
      ["./a.py", 1],
      ["../c/d.py", 2],
      ["./f.py", 3],
      ["./g.py", 3],
    ]);
  });

  test("find a circle of imports, of types alone too", () => {
    const a = parseSourceFile("worker/a.ts", `import { b } from "./b.ts";`);
    const b = parseSourceFile("worker/b.ts", `import { c } from "./c.ts";`);
    const c = parseSourceFile("worker/c.ts", `import { b } from "./b.ts";`);
    const typesOnly = parseSourceFile("worker/c.ts", `import type { b } from "./b.ts";`);
    expect(findCycles([a, b, c])).toEqual([["worker/b.ts", "worker/c.ts", "worker/b.ts"]]);
    expect(findCycles([a, b, typesOnly])).toHaveLength(1);
  });
});
