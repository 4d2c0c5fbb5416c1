/**
 * What answers say of limits that a host does not keep, where an operator does without the check.
 */
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { reachableDirectory, startRig } from "../../support/workers/rig.ts";

let base: string;
beforeEach(async () => {
  base = await reachableDirectory();
});
afterEach(() => rm(base, { recursive: true, force: true }));

/**
 * A bubblewrap on a host that does not keep something: a shell's edit of its options, or of the
 * command inside.
 */
async function careless(edit: string, shell: string): Promise<string> {
  const options = join(base, "options");
  await mkdir(options);
  // Sandboxes may run as another user.
  await chmod(options, 0o777);
  await writeFile(
    join(base, "bwrap"),
    `#!/bin/bash
[[ "$*" = *"--args 3 "* ]] || exec /usr/bin/bwrap "$@"
sed -z '${edit}' <&3 > ${options}/$$
until [ "$1" = -- ]; do own="$own $1"; shift; done
${shell}
exec /usr/bin/bwrap $own "$@" 3< ${options}/$$
`,
    { mode: 0o755 },
  );
  return join(base, "bwrap");
}

async function mechanisms(edit: string, shell: string, minimum: string): Promise<object> {
  await using rig = await startRig({
    tools: { well: { function: "well" } },
    environment: { SANDBOX_BWRAP_BIN: await careless(edit, shell), SANDBOX_MINIMUM: minimum },
  });
  const answer = await rig.call("well");
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  const { execution } = answer.response["result"] as {
    execution: { limits_enforced: Record<string, { by: string }> };
  };
  const { limits_enforced: limits } = execution;
  return Object.fromEntries(Object.entries(limits).map(([name, { by }]) => [name, by]));
}

const others = { disk: "guard", files: "guard", status: "guard", wall_time: "guard" };

test("an answer names what rlimits would keep as kept by nobody where there are none", async () => {
  const shell = 'if [[ "$2" = */prlimit ]]; then shift; until [ "$1" = -- ]; do shift; done; fi';
  expect(await mechanisms("", shell, "user-namespaces,tmpfs")).toMatchObject({
    ...others,
    open_files: "none",
    file_size: "none",
    tmp: "kernel",
  });
});

test(
  "an answer names tmpfs as bounded by none where it has no size",
  { tags: "full" },
  async () => {
    expect(await mechanisms("/^--size$/{N;d}", "", "user-namespaces,rlimits")).toMatchObject({
      ...others,
      open_files: "kernel",
      file_size: "kernel",
      processes: "kernel",
      tmp: "none",
    });
  },
);

test("an answer names the CPUs as bounded by nobody where the filter is not on", async () => {
  const shell = 'own="${own/--seccomp 4/}"';
  expect(await mechanisms("", shell, "user-namespaces")).toMatchObject({ ...others, cpus: "none" });
});
