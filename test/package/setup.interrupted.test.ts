/**
 * Setup that is interrupted leaves no installer behind, and keeps the checkout's lock until the
 * installer has ended.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { setUpFrom } from "./checkout-to-set-up.ts";
import { ownNode, root, userEnvironment, type Ending } from "./processes.ts";

/** What npm does in these tests once it has got a signal. */
const npmThatEndsLate = (base: string): string => `#!/bin/sh
test "$1" != view || exit 0
trap 'echo "signal" >> ${base}/calls' INT TERM
echo "$$ npm" >> ${base}/calls
until test -e ${base}/release; do sleep 0.05; done
echo "end" >> ${base}/calls
mkdir -p node_modules/node/bin
touch node_modules/node/bin/node
cp package-lock.json node_modules/.package-lock.json
`;

let base: string;
const started: ChildProcess[] = [];
const calls = (): readonly string[] =>
  existsSync(join(base, "calls"))
    ? readFileSync(join(base, "calls"), "utf8").trimEnd().split("\n")
    : [];

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "setup-interrupted-"));
  mkdirSync(join(base, "tools"));
  mkdirSync(join(base, "checkout"));
  cpSync(join(root, "scripts"), join(base, "checkout", "scripts"), { recursive: true });
  const npm = join(base, "tools", "npm");
  writeFileSync(npm, npmThatEndsLate(base));
  chmodSync(npm, 0o755);
  const packages = { "": { name: "it" }, "node_modules/node": { version: "24.0.0" } };
  writeFileSync(join(base, "checkout", "package-lock.json"), JSON.stringify({ packages }));
});

afterEach(async () => {
  release();
  for (const child of started.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  rmSync(base, { recursive: true });
});

const release = (): void => writeFileSync(join(base, "release"), "");
const command = [join("checkout", "scripts", "setup.mjs"), "packages"];
const options = (): { cwd: string; env: Record<string, string> } => ({
  cwd: base,
  env: userEnvironment({
    PATH: [join(base, "tools"), userEnvironment()["PATH"]].join(delimiter),
  }),
});

/** A setup whose npm runs. */
async function startSetup(): Promise<ChildProcess> {
  const child = spawn(ownNode, command, { ...options(), stdio: "ignore" });
  started.push(child);
  await vi.waitFor(() => expect(calls()).toHaveLength(1), 10_000);
  return child;
}

/** A second setup, once it says that it waits. */
async function startWaiting(): Promise<{ ending: Promise<Ending> }> {
  const child = spawn(ownNode, command, { ...options(), stdio: ["ignore", "ignore", "pipe"] });
  started.push(child);
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ending = once(child, "exit").then(([status, signal]: (number | string | null)[]) => ({
    status: status as number | null,
    signal: signal as string | null,
    stdout: "",
    stderr,
  }));
  await vi.waitFor(() => expect(stderr).toContain("waiting for another setup of "), 10_000);
  return { ending };
}

const endsAfterNpm = async (signal: "SIGINT" | "SIGTERM"): Promise<void> => {
  const setup = await startSetup();
  setup.kill(signal);
  await vi.waitFor(() => expect(calls()).toContain("signal"), 10_000);
  expect(setup.signalCode).toBeNull();
  release();
  await vi.waitFor(() => expect(setup.signalCode).toBe(signal), 10_000);
  expect(calls().slice(1)).toEqual(["signal", "end"]);
};
test("SIGTERM goes to npm, and setup ends by it after npm has ended", () =>
  endsAfterNpm("SIGTERM"));
test("SIGINT goes to npm, and setup ends by it after npm has ended", { tags: "full" }, () =>
  endsAfterNpm("SIGINT"),
);

test("a second signal ends an npm that does not end by itself", { tags: "full" }, async () => {
  const setup = await startSetup();
  const npm = Number(calls()[0]?.split(" ")[0]);
  setup.kill("SIGINT");
  await vi.waitFor(() => expect(calls()).toContain("signal"), 10_000);
  setup.kill("SIGINT");
  await vi.waitFor(() => expect(setup.signalCode).toBe("SIGINT"), 10_000);
  expect(() => process.kill(npm, 0)).toThrow("ESRCH");
});

test(
  "the next setup waits for an interrupted one whose npm still runs, and says so",
  { tags: "full" },
  async () => {
    const setup = await startSetup();
    const next = await startWaiting();
    setup.kill("SIGINT");
    await vi.waitFor(() => expect(calls()).toContain("signal"), 10_000);
    release();
    expect(await next.ending).toMatchObject({ status: 0, signal: null });
    expect(calls().slice(1)).toEqual(["signal", "end"]);
  },
);

test("the lock lives as long as npm, though setup was killed", async () => {
  const setup = await startSetup();
  setup.kill("SIGKILL");
  await once(setup, "exit");
  const next = await startWaiting();
  release();
  expect(await next.ending).toMatchObject({ status: 0, signal: null });
  expect(calls().slice(1)).toEqual(["end"]);
});

test(
  "a registry that cannot be reached is told at once, with what to look at",
  { tags: "full" },
  async () => {
    const ending = await setUpFrom("http://127.0.0.1:1/", base);
    expect(ending).toMatchObject({ status: 69 });
    expect(ending.stderr).toContain("the npm registry does not answer, and npm's cache does not");
    expect(ending.stderr).toContain("connect ECONNREFUSED 127.0.0.1:1");
    expect(ending.stderr).toContain("npm config get registry");
  },
);
