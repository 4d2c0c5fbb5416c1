/**
 * The test projects, in order of speed: what a quick look wants first runs first.
 */
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { PlainCountReporter } from "./test/reporter.ts";

// Tests start Node some hundred times, half of which is compiling: Node keeps what came of it.
process.env["NODE_COMPILE_CACHE"] ??= new URL(
  "node_modules/.cache/node-compile-cache",
  import.meta.url,
).pathname;

interface Project {
  readonly include: string;
  /** For one test or hook, on two busy cores. */
  readonly timeoutSeconds: number;
}

const projects: Readonly<Record<string, Project>> = {
  architecture: { include: "test/architecture.test.ts", timeoutSeconds: 30 },
  unit: { include: "test/unit/**/*.test.ts", timeoutSeconds: 20 },
  conformance: { include: "test/conformance/**/*.test.ts", timeoutSeconds: 30 },
  integration: { include: "test/integration/**/*.test.ts", timeoutSeconds: 60 },
  security: { include: "test/security/**/*.test.ts", timeoutSeconds: 60 },
  package: { include: "test/package/**/*.test.ts", timeoutSeconds: 240 },
  // What takes too long for every run: `npm run test:full`.
  full: { include: "test/full/**/*.test.ts", timeoutSeconds: 600 },
};

export default defineConfig({
  test: {
    // Most tests wait for processes: more files at once than cores.
    maxWorkers: 3,
    reporters: ["default", new PlainCountReporter()],
    projects: Object.entries(projects).map(toConfiguration),
  },
});

function toConfiguration(
  [name, { include, timeoutSeconds }]: readonly [string, Project],
  index: number,
): TestProjectConfiguration {
  const timeoutMs = timeoutSeconds * 1000;
  return {
    extends: true,
    test: {
      name,
      include: [include],
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      sequence: { groupOrder: index },
    },
  };
}
