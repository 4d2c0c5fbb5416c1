/**
 * The table of docs/runtime.md of the limits that backends keep.
 */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime.ts";
import { limitKinds } from "../../../worker/runtime/api/limits.ts";
import { openCgroups } from "../../../worker/sandbox/cgroup/host-cgroups.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { openers } from "../../support/runtime/opened-backends.ts";

const text = await readFile(new URL("../../../docs/runtime.md", import.meta.url), "utf8");
const [, section = ""] = /\n## Which limits are kept\n([^]*?)\n## /.exec(text) ?? [];
const [[, ...columns] = [], , ...lines] = section
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split("|").slice(1, -1).map(unquoted));
const rows = new Map(lines.map(([kind = "", ...keepers]) => [kind, keepers]));

function unquoted(cell: string): string {
  return cell.trim().replaceAll("`", "");
}

function keepersOf({ evidence }: RuntimeBackend): readonly string[] {
  return limitKinds.map((kind) => evidence[kind] ?? "—");
}

/** What is bounded by control groups of this process, where it may make some. */
const ownGroups: readonly string[] = ["bubblewrap", "gvisor"];

async function canBoundMemory(): Promise<boolean> {
  const onRemoveFailed = (error: unknown): never => expect.fail(String(error));
  const { cgroups } = await openCgroups({ clock: systemClock, newId, onRemoveFailed });
  const { memory = false } = cgroups?.controls ?? {};
  await cgroups?.[Symbol.asyncDispose]();
  return memory;
}

test("the table has each limit, and each backend that has limits of its own", () => {
  expect(columns).toEqual(limitKinds);
  const opened = Object.keys(openers).filter((kind) => kind !== "remote");
  expect([...rows.keys()].sort()).toEqual(opened.sort());
});

describe.each([
  { kind: "bubblewrap", like: "bubblewrap", tags: ["full"] },
  { kind: "wasm", like: "wasm", tags: [] },
  { kind: "docker", like: "docker", tags: ["full"] },
  { kind: "containerd", like: "containerd", tags: ["full"] },
  { kind: "gvisor", like: "gvisor", tags: ["full"] },
  { kind: "unsafe_host", like: "unsafe_host", tags: ["full"] },
  { kind: "remote", like: "bubblewrap", tags: ["full"] },
] as const)("the backend $kind", ({ kind, like, tags }) => {
  test(`keeps what the table says of ${like}`, { tags: [...tags] }, async (context) => {
    const isGuarded = ownGroups.includes(like) && !(await canBoundMemory());
    const row = rows
      .get(like)
      ?.map((by, n) => (isGuarded && columns[n] === "memory" ? "guard" : by));
    await using stack = new AsyncDisposableStack();
    const backend = await openers[kind](context, (end) => void stack.defer(end));
    stack.use(backend);
    expect(keepersOf(backend)).toEqual(row);
  });
});
