/**
 * Every page of the console in a real browser: nothing that axe-core finds, no wider than the
 * window, no error and no violation of the content security policy.
 *
 * @module-tag full
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  axeViolations,
  missingBrowser,
  openConsole,
  overflow,
  views,
  type ConsolePage,
} from "../../support/console/browser.ts";
import { startConsoleRig, type ConsoleRig } from "../../support/console/rig.ts";

/** Each with its heading, and a text that is there when all of it is. */
const places = [
  ["#/tools", "Tools", "5 tools"],
  ["#/tools/every_kind", "every_kind", "Invoke"],
  ["#/tools/process_file", "process_file", "Invoke"],
  ["#/tools/undescribed", "undescribed", "Invoke"],
  ["#/tools/missing_tool", "missing_tool", "No module named 'pandas'"],
  ["#/calls", "Calls", "1 running"],
  ["#/calls/rich", /echo_tool/, "The whole answer"],
  ["#/calls/c9", /slow_tool/, "Execution"],
  ["#/calls/c7", /process_file/, "Execution"],
  ["#/calls/none", "Call", "There is no such call."],
  ["#/charts", "Charts", "Latency"],
  ["#/worker", "Worker", "Readiness"],
  ["#/nowhere", "No such page", "All tools"],
] as const;

/** Disclosures that are opened on a page, at most. */
const maxOpened = 100;

let rig: ConsoleRig;
beforeAll(async () => {
  if (missingBrowser === undefined) rig = await startConsoleRig();
});
afterAll(() => rig?.[Symbol.asyncDispose]());
beforeEach((context) => context.skip(missingBrowser !== undefined, missingBrowser));

/** Shows everything that a page hides at first. */
async function openEverything({ page }: ConsolePage): Promise<void> {
  const closed = page
    .locator("main details:not([open]) > summary")
    .or(page.locator("main [aria-expanded=false]"))
    .or(page.getByRole("button", { name: /^Give / }));
  for (let count = 0; count < maxOpened && (await closed.count()) > 0; count += 1) {
    await closed.first().click();
  }
  await page.getByText("Loading…").waitFor({ state: "detached" });
}

describe("a page of the console", () => {
  test.each(views)("is accessible and fits, $theme, $width pixels wide", async (view) => {
    await using console = await openConsole(rig.browser, rig.console, view);
    const { page, goTo, errors } = console;
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    const found: string[] = [];
    for (const [fragment, heading, text] of places) {
      await goTo(fragment, heading);
      await page.getByText(text).first().waitFor();
      await openEverything(console);
      const wrong = [...(await axeViolations(page))];
      const tooWide = await overflow(page);
      if (tooWide > 0) wrong.push(`is ${tooWide} pixels too wide`);
      found.push(...wrong.map((text) => `${fragment}: ${text}`));
    }
    expect(found).toEqual([]);
    // The call that is not there is a 404, which browsers report.
    expect(errors.filter((error) => !/status of 404/.test(error))).toEqual([]);
    expect(await page.title()).not.toContain("owned");
  });

  test("shows axe-core, the policy and the width what is wrong", async () => {
    await using console = await openConsole(rig.browser, rig.console, {
      theme: "light",
      width: 375,
    });
    const { page, errors } = console;
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    await page.evaluate(`{
      const image = document.createElement("img");
      image.src = "https://example.org/a.png";
      image.width = 500;
      document.querySelector("main").append(image);
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.body.append(script);
    }`);
    expect(await axeViolations(page)).toContainEqual(expect.stringMatching(/^image-alt/));
    expect(await overflow(page)).toBeGreaterThan(0);
    await expect.poll(() => errors.join()).toMatch(/violates img-src/);
    expect(errors.join()).toMatch(/violates script-src/);
    expect(await page.title()).not.toContain("owned");
  });

  test("opens within its budget of requests, none of them elsewhere", async () => {
    const context = await rig.browser.newContext();
    const page = await context.newPage();
    const urls: string[] = [];
    page.on("request", (request) => urls.push(request.url()));
    await page.goto(`${rig.console.url}#token=${rig.console.token}`);
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    await context.close();
    expect(urls.filter((url) => !url.startsWith(rig.console.url))).toEqual([]);
    const paths = urls.map((url) => url.slice(rig.console.url.length).replace(/#.*/, ""));
    expect([...new Set(paths)].sort()).toEqual([
      "",
      "api/events",
      "console.css",
      "console.js",
      "icon.svg",
    ]);
  });
});
