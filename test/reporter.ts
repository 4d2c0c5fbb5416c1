/**
 * Ends every test run with the plain line `N passed, N failed, N skipped`, after its slowest tests
 * and a list of what was skipped and why.
 *
 * Everything that makes a run fail is counted as failed: a file that did not load, a hook that
 * threw, an unhandled error, a test that never ended. Tests that `--tagsFilter TAG` or
 * `--tagsFilter '!TAG'` leaves out are not counted.
 */
import type {
  Reporter,
  SerializedError,
  TestCase,
  TestModule,
  TestSuite,
  Vitest,
} from "vitest/node";

/** The tag of tests that only `npm run test:full` runs. */
export const fullTag = "full";

/** How many of the slowest tests are shown. */
const maxShown = 10;
/** A test of `npm test` that takes longer on an idle machine belongs to `npm run test:full`. */
const quickTestMs = 3_000;

export class PlainCountReporter implements Reporter {
  /** Tags that a test of this run has and, after a `!`, that it does not have. */
  #filter: readonly string[] = [];
  readonly #timed: { readonly ms: number; readonly title: string }[] = [];
  #passed = 0;
  #failed = 0;
  /** How many tests were skipped, by the line that tells file and reason. */
  readonly #skipped = new Map<string, number>();

  onInit(vitest: Vitest): void {
    this.#filter = (vitest.config.tagsFilter ?? []).filter((one) => /^!?[\w-]+$/.test(one));
    // Nothing prints after the exit handlers, and they run for a run that broke off, too.
    if (!vitest.config.watch) process.once("exit", (code) => this.#end(code));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    this.#failed += unhandled.length;
    for (const module of modules) this.#countModule(module);
  }

  #countModule(module: TestModule): void {
    const suites = [module, ...module.children.allSuites()];
    this.#failed += suites.filter((suite) => suite.errors().length > 0).length;
    for (const test of module.children.allTests()) {
      if (this.#leavesOut(test.tags)) continue;
      const result = test.result();
      const ms = test.diagnostic()?.duration ?? 0;
      this.#timed.push({ ms, title: `${test.module.relativeModuleId}: ${test.fullName}` });
      if (result.state === "passed") this.#passed += 1;
      else if (result.state === "skipped") this.#countSkipped(test, result.note);
      else this.#failed += 1;
    }
  }

  #leavesOut(tags: readonly string[]): boolean {
    return this.#filter.some((one) =>
      one.startsWith("!") ? tags.includes(one.slice(1)) : !tags.includes(one),
    );
  }

  #countSkipped(test: TestCase, note: string | undefined): void {
    const reason = note ?? (isInFailedSuite(test) ? "its suite failed" : "no reason given");
    const line = `${test.module.relativeModuleId}: ${reason}`;
    this.#skipped.set(line, (this.#skipped.get(line) ?? 0) + 1);
  }

  #end(code: number): void {
    // What failed outside of the tests, such as a run without any, was said above; here it must not
    // look like success.
    if (code !== 0 && this.#failed === 0) this.#failed = 1;
    if (this.#failed > 0 && code === 0) process.exitCode = 1;
    const skipped = [...this.#skipped.values()].reduce((sum, count) => sum + count, 0);
    const lines = [
      "slowest tests:",
      ...this.#slowest(),
      ...[...this.#skipped].map(([line, count]) => `skipped ${count} in ${line}`),
      `${this.#passed} passed, ${this.#failed} failed, ${skipped} skipped`,
    ];
    process.stdout.write(`\n${lines.join("\n")}\n`);
  }

  #slowest(): readonly string[] {
    const slowest = this.#timed.toSorted((one, other) => other.ms - one.ms).slice(0, maxShown);
    return slowest.map(({ ms, title }) => {
      const isQuickRun = this.#filter.includes(`!${fullTag}`);
      const advice = isQuickRun && ms > quickTestMs ? " (slow: npm run test:full?)" : "";
      return `${(ms / 1_000).toFixed(1).padStart(6)} s ${title}${advice}`;
    });
  }
}

function isInFailedSuite({ parent }: TestCase | TestSuite): boolean {
  if (parent.errors().length > 0) return true;
  return parent.type === "suite" && isInFailedSuite(parent);
}
