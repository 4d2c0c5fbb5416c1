/**
 * The test projects. Their files run together, in the order of test/longest-first.ts, so that no
 * core waits between two projects.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig, type TestProjectConfiguration } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";
import { promisePrefix, promiseTables } from "./test/promise-tags.ts";
import { PlainCountReporter, fullTag } from "./test/reporter.ts";

// Tests start Node some hundred times, half of which is compiling: Node keeps what came of it.
process.env["NODE_COMPILE_CACHE"] ??= fileURLToPath(
  new URL("node_modules/.cache/node-compile-cache", import.meta.url),
);

// Test processes start programs some thousand times, and a fork takes longer the larger the process
// is: 4 ms per 100 MB. The C library would keep the memory of large buffers that are free again.
process.env["MALLOC_ARENA_MAX"] ??= "2";
process.env["MALLOC_MMAP_THRESHOLD_"] ??= String(128 * 1024);
const smallHeap = ["--max-semi-space-size=2"];

// A heap that may grow to so many MB before it is collected as a whole saves a tenth of the
// processor time of unit tests.
const lateCollection = ["--initial-old-space-size=100"];

// Threads of V8 that collect the many small garbages of such a heap mostly wait for each other: a
// sixth of the processor time.
const oneCollector = ["--single-threaded-gc"];

interface Project {
  readonly include: string;
  readonly exclude?: string;
  /** For one test or hook, on two busy cores. */
  readonly timeoutSeconds: number;
  /**
   * Whether each file has a process to itself; others share one and load the sources once, which is
   * most of a file's price.
   */
  readonly isolate: boolean;
  /** Whether its files begin when those of all other projects have ended. */
  readonly runsLast?: boolean;
}

const promises = promiseTables(
  readFileSync(new URL("SECURITY.md", import.meta.url), "utf8"),
).flat();

const publishedTests = "test/full/published/**/*.test.ts";

const projects: Readonly<Record<string, Project>> = {
  architecture: { include: "test/architecture.test.ts", timeoutSeconds: 30, isolate: false },
  unit: { include: "test/unit/**/*.test.ts", timeoutSeconds: 20, isolate: false },
  // One project, since processes are not shared between projects.
  system: {
    include: "test/{conformance,integration,security}/**/*.test.ts",
    timeoutSeconds: 60,
    isolate: false,
  },
  package: { include: "test/package/**/*.test.ts", timeoutSeconds: 240, isolate: true },
  // What takes too long for every run: `npm run test:full`.
  full: {
    include: "test/full/**/*.test.ts",
    exclude: publishedTests,
    timeoutSeconds: 600,
    isolate: true,
  },
  // By itself: it builds `dist/`, which programs would be started from.
  "full-published": {
    include: publishedTests,
    timeoutSeconds: 240,
    isolate: true,
    runsLast: true,
  },
};

export default defineConfig({
  test: {
    // Most tests wait for processes: more files at once than cores. `npm test` has six; with eight,
    // tests met their time limits, and it took no less. Each takes some 0.25 GB.
    maxWorkers: 4,
    execArgv: [...smallHeap, ...lateCollection, ...oneCollector],
    // Node loads the sources itself and keeps what it compiled, as it does for our programs: each
    // test process starts with half a second less of processor time. No test mocks modules.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    globalSetup: ["test/global-setup.ts"],
    sequence: { sequencer: LongestFirst },
    reporters: ["default", new PlainCountReporter()],
    tags: [
      {
        name: fullTag,
        description:
          "takes over 3 s, or is a race, a flood, a restart, one more case: npm run test:full",
        // Slow tests are tenfold slower where other programs need the processors too.
        timeout: 600_000,
      },
      ...promises.map((id) => ({
        name: `${promisePrefix}${id}`,
        description: `tries to break the promise ${id} of SECURITY.md`,
      })),
    ],
    projects: Object.entries(projects).map(toConfiguration),
  },
});

function toConfiguration([name, project]: readonly [string, Project]): TestProjectConfiguration {
  const { include, exclude, timeoutSeconds, isolate, runsLast = false } = project;
  const timeoutMs = timeoutSeconds * 1000;
  return {
    extends: true,
    test: {
      name,
      include: [include],
      exclude: [...configDefaults.exclude, ...(exclude === undefined ? [] : [exclude])],
      isolate,
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      sequence: { groupOrder: runsLast ? 1 : 0 },
    },
  };
}
