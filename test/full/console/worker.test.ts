/**
 * The console of a real worker in a real browser, on the calls of the demo. With
 * `CONSOLE_PICTURES=docs/images` it makes the pictures of the documents.
 *
 * @module-tag full
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { CliProcess } from "../../integration/harness/cli-process.ts";
import {
  type ConsolePlace,
  axeViolations,
  missingBrowser,
  openBrowser,
  openConsole,
  overflow,
  views,
} from "../../support/console/browser.ts";

/** Bytes that a picture of a whole page has at least: an empty one has fewer. */
const leastPictureBytes = 20_000;

let owned: AsyncDisposableStack;
let browser: Browser;
let served: ConsolePlace;
let pictures: string;

beforeAll(async () => {
  if (missingBrowser !== undefined) return;
  owned = new AsyncDisposableStack();
  const home = owned.use(await createPassableDirectory("str-console-test-"));
  pictures = process.env["CONSOLE_PICTURES"] ?? join(home.path, "pictures");
  await mkdir(pictures, { recursive: true });
  const cli = owned.use(
    new CliProcess(["demo", "--console"], { TMPDIR: home.path }, { isGroup: true }),
  );
  const [, url = "", token = ""] = await cli.said("stdout", /Console: (\S+\/)#token=(\S+)\n/);
  served = { url, token };
  browser = owned.adopt(await openBrowser(), (each) => each.close());
  owned.defer(async () => {
    process.kill(-(cli.child.pid ?? NaN), "SIGINT");
    await cli.finished;
  });
});
afterAll(() => owned?.disposeAsync());

async function picture(page: Page, name: string): Promise<void> {
  const bytes = await page.screenshot();
  expect(bytes.byteLength).toBeGreaterThan(leastPictureBytes);
  await writeFile(join(pictures, `${name}.png`), bytes);
}

const ended = (page: Page) => page.getByRole("status").getByText(/^✓?\s*ok$/);

describe("the console of a worker", () => {
  beforeEach((context) => context.skip(missingBrowser !== undefined, missingBrowser));

  test("shows the calls of the demo, and the phases of each", async () => {
    await using console = await openConsole(browser, served);
    const { page, goTo, errors } = console;
    await goTo("#/calls", "Calls");
    await page.getByRole("link", { name: "convert_temperature" }).waitFor();
    expect(await page.getByText("TOOL_ERROR").count()).toBeGreaterThan(0);
    await picture(page, "console-calls");
    await page.getByRole("link", { name: "process_file" }).click();
    await page.getByRole("heading", { level: 1, name: /process_file/ }).waitFor();
    for (const word of ["memory", "wall time", "guard"])
      await page.getByText(word, { exact: true }).first().waitFor();
    expect(errors).toEqual([]);
  });

  test("calls a tool with a file that was given to a parameter of text", async () => {
    await using console = await openConsole(browser, served);
    const { page, goTo, errors } = console;
    await goTo("#/tools/process_file", "process_file");
    await page.getByLabel("Give a file to").selectOption({ label: "input_file" });
    await page.getByRole("button", { name: "Attach a file" }).click();
    const buffer = Buffer.from("one two\nthree\n");
    const file = { name: "wörter & more.txt", mimeType: "text/plain", buffer };
    await page.locator("input[type=file]").setInputFiles(file);
    await page.getByText("stored, version 0").waitFor();
    await picture(page, "console-form");
    await page.getByRole("button", { name: "Invoke" }).click();
    await page.getByRole("log").getByText("Analyzing content...").waitFor();
    await ended(page).waitFor();
    const artifacts = page.getByRole("region", { name: "Artifacts" });
    await artifacts.getByRole("button", { name: /^Preview/ }).click();
    await artifacts.getByText("Words: 3").waitFor();
    const started = page.waitForEvent("download");
    await artifacts.getByRole("button", { name: "Download summary.txt" }).click();
    const download = await started;
    expect(download.suggestedFilename()).toBe("summary.txt");
    expect(await readFile(await download.path(), "utf8")).toContain("Words: 3");
    await page.evaluate("scrollTo(0, 0)");
    await picture(page, "console-call");
    expect(errors).toEqual([]);
  });

  test("shows what a tool prints while it runs, and cancels it", async () => {
    await using console = await openConsole(browser, served);
    const { page, goTo, errors } = console;
    await goTo("#/tools/execute_python", "execute_python");
    const code = "import time\nprint('<b>first</b>', flush=True)\ntime.sleep(60)";
    await page.getByLabel(/^code/).fill(code);
    await page.getByRole("button", { name: "Invoke" }).click();
    await page.getByRole("button", { name: /^Cancel call/ }).click();
    await page.getByText("CANCELLED").first().waitFor();
    await page.getByText("An operator cancelled the call").first().waitFor();
    expect(errors).toEqual([]);
  });

  test("forgets a token that is signed out, and refuses a wrong one", async () => {
    await using console = await openConsole(browser, served);
    const { page } = console;
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    expect(await page.evaluate("document.cookie + JSON.stringify(localStorage)")).toBe("{}");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("not the token").waitFor();
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  });

  test.each(views)("is accessible and fits, $theme, $width pixels wide", async (view) => {
    await using console = await openConsole(browser, served, view);
    const { page, goTo, errors } = console;
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    const found: string[] = [];
    for (const [fragment, heading] of [
      ["#/tools", "Tools"],
      ["#/tools/process_file", "process_file"],
      ["#/calls", "Calls"],
      ["#/charts", "Charts"],
      ["#/worker", "Worker"],
    ] as const) {
      await goTo(fragment, heading);
      const lines = await axeViolations(page);
      const tooWide = await overflow(page);
      found.push(...lines, ...(tooWide > 0 ? [`${fragment} is ${tooWide} pixels too wide`] : []));
    }
    if (view.theme === "dark") await picture(page, "console-worker-dark");
    if (view.width < 400) {
      await goTo("#/calls", "Calls");
      await picture(page, "console-narrow");
    }
    expect(found).toEqual([]);
    expect(errors).toEqual([]);
  });
});
