/**
 * The test projects, in order of speed: what a quick look wants first runs first.
 */
import { configDefaults, defineConfig, type TestProjectConfiguration } from "vitest/config";
import { PlainCountReporter, fullTag } from "./test/reporter.ts";

// Tests start Node some hundred times, half of which is compiling: Node keeps what came of it.
process.env["NODE_COMPILE_CACHE"] ??= new URL(
  "node_modules/.cache/node-compile-cache",
  import.meta.url,
).pathname;

interface Project {
  readonly include: string;
  readonly exclude?: string;
  /** For one test or hook, on two busy cores. */
  readonly timeoutSeconds: number;
  /**
   * Whether each file has a process to itself: where tests count what is open, and where they start many processes, since a
   * process that has grown takes long to fork. Others load the sources once.
   */
  readonly isolate: boolean;
}

const publishedTests = "test/full/published/**/*.test.ts";

const projects: Readonly<Record<string, Project>> = {
  architecture: { include: "test/architecture.test.ts", timeoutSeconds: 30, isolate: true },
  unit: { include: "test/unit/**/*.test.ts", timeoutSeconds: 20, isolate: false },
  conformance: { include: "test/conformance/**/*.test.ts", timeoutSeconds: 30, isolate: true },
  integration: { include: "test/integration/**/*.test.ts", timeoutSeconds: 60, isolate: true },
  security: { include: "test/security/**/*.test.ts", timeoutSeconds: 60, isolate: true },
  package: { include: "test/package/**/*.test.ts", timeoutSeconds: 240, isolate: true },
  // What takes too long for every run: `npm run test:full`.
  full: {
    include: "test/full/**/*.test.ts",
    exclude: publishedTests,
    timeoutSeconds: 600,
    isolate: true,
  },
  // By itself: it builds `dist/`, which programs would be started from.
  "full-published": { include: publishedTests, timeoutSeconds: 240, isolate: true },
};

export default defineConfig({
  test: {
    // Most tests wait for processes: more files at once than cores.
    maxWorkers: 4,
    globalSetup: ["test/global-setup.ts"],
    reporters: ["default", new PlainCountReporter()],
    tags: [
      {
        name: fullTag,
        description: "takes over 3 s, or is a race, a flood, a restart: npm run test:full",
      },
    ],
    projects: Object.entries(projects).map(toConfiguration),
  },
});

function toConfiguration(
  [name, { include, exclude, timeoutSeconds, isolate }]: readonly [string, Project],
  index: number,
): TestProjectConfiguration {
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
      sequence: { groupOrder: index },
    },
  };
}
