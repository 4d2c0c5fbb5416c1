/**
 * Rlimits that no profile names, from inside a sandbox: what a tool could hold or be with those
 * that the worker inherited.
 */
import { type TestContext, describe, expect, test } from "vitest";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { fixedLimits } from "../../../worker/sandbox/rlimits.ts";
import { never, openBackend, request, runScript } from "./sandbox-host.ts";

/** Says what became of each attempt. */
const attempts = `
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def outcome(value):
    return "done" if value >= 0 else errno.errorcode[ctypes.get_errno()]
print("queue", outcome(libc.mq_open(b"/own", os.O_CREAT | os.O_RDWR, 0o600, None)))
quiet, timer = (ctypes.c_int * 16)(0, 0, 0, 1), ctypes.c_void_p()
timers = 0
while timers < 3000 and libc.timer_create(1, ctypes.byref(quiet), ctypes.byref(timer)) == 0:
    timers += 1
print("timers", timers)
memory = ctypes.create_string_buffer(1 << 20)
print("locks a key", outcome(libc.mlock(memory, 4096)))
print("locks a megabyte", outcome(libc.mlock(memory, 1 << 20)))
print("real time", outcome(libc.sched_setscheduler(0, 1, ctypes.byref(ctypes.c_int(1)))))
print("nice", outcome(libc.setpriority(0, 0, -1)))
`;

async function say(context: TestContext, script: string, profile = "restrictive"): Promise<string> {
  await using backend = await openBackend(context);
  const named = request({ profile: builtInProfiles.get(profile)! });
  await using sandbox = await backend.acquire(named, never);
  const { stdout, stderr } = await runScript(sandbox, script);
  expect(stderr.text).toBe("");
  return stdout.text;
}

describe("a tool", () => {
  test("is the first to be ended when the host has no memory left, and cannot change that", async (context) => {
    const script = "echo 0 2> /dev/null > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj";
    expect(await say(context, script, "permissive")).toBe("1000\n");
  });

  test(
    "has nothing of its memory in a core dump, and cannot change that",
    { tags: "promise-S16" },
    async (context) => {
      const script =
        "echo 0x33 2> /dev/null > /proc/self/coredump_filter; cat /proc/self/coredump_filter";
      expect(await say(context, script, "permissive")).toBe("00000000\n");
    },
  );

  test(
    "has no message queues, few timers, little locked memory and no priority",
    { tags: "promise-S10" },
    async (context) => {
      const said = await say(context, `/usr/bin/python3 -c '${attempts}'`);
      expect(said.trim().split("\n")).toEqual([
        "queue EMFILE",
        `timers ${fixedLimits.sigpending.bound}`,
        "locks a key done",
        "locks a megabyte ENOMEM",
        "real time EPERM",
        "nice EACCES",
      ]);
    },
  );

  test.for([...builtInProfiles.keys()])(
    "has these limits for good under %s",
    { tags: "promise-S10" },
    async (profile, context) => {
      const output = ["--noheadings", "--raw", "--output", "RESOURCE,SOFT,HARD"].join(" ");
      const said = await say(context, `/usr/bin/prlimit ${output}`, profile);
      const rows = said.trim().split("\n");
      for (const [name, { bound }] of Object.entries(fixedLimits))
        expect(rows).toContain(`${name.toUpperCase()} ${bound} ${bound}`);
    },
  );
});
