/**
 * What a person does with the console, in a real browser.
 *
 * @module-tag full
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { missingBrowser, openConsole } from "../../support/console/browser.ts";
import { startConsoleRig, type ConsoleRig } from "../../support/console/rig.ts";

let rig: ConsoleRig;
beforeAll(async () => {
  if (missingBrowser === undefined) rig = await startConsoleRig();
});
afterAll(() => rig?.[Symbol.asyncDispose]());
beforeEach((context) => context.skip(missingBrowser !== undefined, missingBrowser));

/** A console that shows its tools. */
async function openTools() {
  const console = await openConsole(rig.browser, rig.console);
  await console.page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
  return console;
}

function heading(page: Page, name: string | RegExp) {
  return page.getByRole("heading", { level: 1, name });
}

/** What the page says has the focus. */
function focused(page: Page): Promise<string> {
  return page.evaluate<string>(
    "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent",
  );
}

/** The width of a decoded image. */
function imageWidth(page: Page, name: string): Promise<number> {
  return page.evaluate<number>(`document.querySelector('img[alt="${name}"]')?.naturalWidth`);
}

describe("a person", () => {
  test("signs in by a link, whose token stays in no address, and signs out", async () => {
    await using console = await openTools();
    const { page } = console;
    expect(page.url()).toBe(`${rig.console.url}#/tools`);
    await page.getByRole("link", { name: "Calls" }).click();
    await heading(page, "Calls").waitFor();
    await page.goBack();
    expect(page.url()).toBe(`${rig.console.url}#/tools`);
    await page.reload();
    await heading(page, "Tools").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await heading(page, "Sign in").waitFor();
    expect(console.errors).toEqual([]);
  });

  test("signs in by the form, and reads why a token is refused", async () => {
    await using console = await openConsole(rig.browser, rig.console, undefined, "");
    const { page } = console;
    await page.getByLabel("Token").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText(/token/i).waitFor();
    await page.getByLabel("Token").fill(rig.console.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await heading(page, "Tools").waitFor();
  });

  test("calls a tool by its form, sees it run, and calls it again", async () => {
    await using console = await openTools();
    const { page } = console;
    await page.getByRole("searchbox").fill("everything works");
    await page.getByText("1 of 5 tools").waitFor();
    await page.getByRole("link", { name: "echo_tool" }).click();
    // The browser's own validation.
    await page.getByRole("button", { name: "Invoke" }).click();
    await page.getByLabel(/^message/).fill("hello");
    await page.getByLabel(/^times/).fill("9");
    await page.getByRole("button", { name: "Invoke" }).click();
    expect(page.url()).toContain("#/tools/echo_tool");
    await page.getByLabel(/^times/).fill("4");
    await page.getByRole("button", { name: "Invoke" }).click();
    await page.getByRole("log").getByText("1 steps to go").waitFor();
    await page.getByRole("region", { name: "stdout" }).getByText("step 1").waitFor();
    await page.getByRole("status").getByText("ok").waitFor();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByText("arguments").click();
    await result.getByText('"hello"').waitFor();
    await page.getByRole("link", { name: "Call again" }).click();
    await expect.poll(() => page.getByLabel(/^message/).inputValue()).toBe("hello");
    expect(await page.getByLabel(/^times/).inputValue()).toBe("4");
    expect(console.errors).toEqual([]);
  });

  test("fills in nested arguments, and goes on in JSON", async () => {
    await using console = await openTools();
    const { page, goTo } = console;
    await goTo("#/tools/every_kind", "every_kind");
    await page.getByLabel(/^name/).fill("me");
    await page.getByLabel(/^ratio/).fill("0.5");
    await page.getByLabel(/^mode/).selectOption("exact");
    await page.getByRole("button", { name: "Give tags" }).click();
    await page.getByRole("button", { name: "Add item" }).click();
    await page.getByLabel(/^Item 1/).fill("a");
    await page.getByLabel("Variant").selectOption("Square");
    await page.getByLabel(/^side/).fill("2");
    await page.getByRole("button", { name: "Give tree" }).click();
    await page.getByLabel(/^label/).fill("root");
    await page.getByRole("button", { name: "Raw JSON" }).click();
    const raw = page.getByLabel("Arguments as JSON");
    expect(JSON.parse(await raw.inputValue())).toEqual({
      name: "me",
      count: 3,
      ratio: 0.5,
      mode: "exact",
      loud: false,
      tags: ["a"],
      shape: { side: 2 },
      tree: { label: "root" },
    });
    await raw.fill('{"name": "me", "unknown": 1}');
    await page.getByRole("button", { name: "Raw JSON" }).click();
    await page
      .getByRole("alert")
      .getByText(/no fields for some/)
      .waitFor();
    await raw.fill("[");
    await page.getByRole("button", { name: "Invoke" }).click();
    await page.getByRole("alert").getByText("arguments are not a JSON object").waitFor();
  });

  test("gives files by the button and by dropping them", async () => {
    await using console = await openTools();
    const { page, goTo } = console;
    await goTo("#/tools/process_file", "process_file");
    await page.getByLabel(/^language/).selectOption("en");
    await page.getByRole("button", { name: "Invoke" }).click();
    await page.getByRole("alert").getByText("input_file needs a file").waitFor();
    const file = (name: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from("text") });
    const [one, more] = await page.locator("input[type=file]").all();
    await one!.setInputFiles(file("first.txt"));
    await page
      .getByRole("list", { name: "Files of input_file" })
      .getByText(/stored/)
      .waitFor();
    const dropped = await page.evaluateHandle(`{
      const transfer = new DataTransfer();
      for (const name of ["a & b.txt", "<i>.txt"]) transfer.items.add(new File(["x"], name));
      transfer;
    }`);
    await page.locator(".drop").nth(1).dispatchEvent("drop", { dataTransfer: dropped });
    await more!.setInputFiles([file("c.txt")]);
    const stored = page.getByRole("list", { name: "Files of more" }).getByText(/stored/);
    await expect.poll(() => stored.count()).toBe(3);
    await page.getByRole("button", { name: "Remove c.txt" }).click();
    await page.getByRole("button", { name: "Invoke" }).click();
    const request = page.getByRole("region", { name: "Request" });
    await request.getByText("more").click();
    const items = request.locator(".children .children summary");
    await expect.poll(() => items.count()).toBe(2);
    for (const item of await items.all()) await item.click();
    await request.getByText('"a & b.txt"').waitFor();
    await request.getByText('"<i>.txt"').waitFor();
    expect(await request.getByText('"c.txt"').count()).toBe(0);
    expect(console.errors).toEqual([]);
  });

  test("cancels a running call, on its page and in the list", async () => {
    await using console = await openTools();
    const { page, goTo } = console;
    for (const place of ["page", "list"]) {
      await goTo("#/tools/slow_tool", "slow_tool");
      await page.getByRole("button", { name: "Invoke" }).click();
      await page.getByRole("log").waitFor();
      if (place === "list") await goTo("#/calls", "Calls");
      await page
        .getByRole("button", { name: /^Cancel call/ })
        .first()
        .click();
      await page.getByText("CANCELLED").first().waitFor();
    }
    expect(console.errors).toEqual([]);
  });

  test("learns that the connection is lost, and that it is back", async () => {
    await using console = await openTools();
    const { page, goTo } = console;
    rig.console.cutStreams();
    await page.getByRole("status").getByText("Connection lost, reconnecting…").waitFor();
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await goTo("#/calls", "Calls");
    rig.console.renewToken();
    rig.console.cutStreams();
    await heading(page, "Sign in").waitFor();
  });

  test("does without a pointer", async () => {
    await using console = await openTools();
    const { page } = console;
    const press = async (...keys: readonly string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await page.evaluate("document.activeElement.blur()");
    await press("Tab");
    expect(await focused(page)).toContain("Skip to the content");
    await press("Enter", "Tab");
    expect(await page.evaluate("document.activeElement.type")).toBe("search");
    await press("Tab");
    expect(await focused(page)).toBe("echo_tool");
    await press("Enter");
    await heading(page, "echo_tool").waitFor();
    await expect.poll(() => focused(page)).toBe("echo_tool");
    expect(await page.title()).toBe("echo_tool – worker console");
    await press("Tab", "Tab");
    await page.keyboard.type("typed");
    await press("Tab", "Enter");
    await page.getByRole("status").getByText("ok").waitFor();
    const tree = page.getByRole("region", { name: "Result" }).locator("summary").nth(1);
    await tree.focus();
    await press("Space");
    await page.getByText('"typed"').first().waitFor();
  });

  test("reads results, images and artifacts, and no tool runs a script there", async () => {
    await using console = await openTools();
    const { page, goTo } = console;
    await goTo("#/calls/rich", /echo_tool/);
    const result = page.getByRole("region", { name: "Result" });
    await expect.poll(() => imageWidth(page, "picture")).toBe(10);
    await result.getByRole("button", { name: "Table" }).click();
    await result.getByRole("cell", { name: "javascript:alert(1)" }).waitFor();
    await result.getByRole("button", { name: "Tree" }).click();
    await result.getByText("many").click();
    const leaves = result.locator(".children .children .leaf");
    await expect.poll(() => leaves.count()).toBe(200);
    await result.getByRole("button", { name: "Show 200 more" }).click();
    await result.getByRole("button", { name: "Show 50 more" }).click();
    await expect.poll(() => leaves.count()).toBe(450);
    const artifacts = page.getByRole("region", { name: "Artifacts" });
    for (const button of await artifacts.getByRole("button", { name: /^Preview/ }).all()) {
      await button.click();
    }
    await artifacts.getByRole("columnheader", { name: "word" }).waitFor();
    await artifacts.getByRole("cell", { name: "a, b" }).waitFor();
    await expect.poll(() => imageWidth(page, "A chart of words")).toBe(200);
    const started = page.waitForEvent("download");
    await artifacts.getByRole("button", { name: "Download words.csv" }).click();
    expect((await started).suggestedFilename()).toBe("words.csv");
    expect(await page.locator("a[href^='javascript' i]").count()).toBe(0);
    expect(await page.locator("main b, main script").count()).toBe(0);
    expect(await page.title()).not.toContain("owned");
    expect(console.errors).toEqual([]);
  });

  test("does not see what agents give and get", async () => {
    await using console = await openTools();
    const { page, goTo } = console;
    await goTo("#/calls/c7", /process_file/);
    await page.getByText("does not show its arguments and its result").waitFor();
    await page.getByText("limit reached: memory").waitFor();
    expect(await page.getByRole("region", { name: /Request|Result/ }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Call again" }).count()).toBe(0);
  });
});
