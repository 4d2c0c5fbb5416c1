/**
 * The system-call filter, as tools meet it: what it refuses under every profile, what the same
 * calls do without it, and what tools are made of and still works.
 */
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../harness/agent.ts";
import { bwrapOptions } from "../../worker/sandbox/bubblewrap/argv.ts";
import { startBwrap } from "../../worker/sandbox/bubblewrap/process.ts";
import { isFilteredArch } from "../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import {
  type SyscallNumbers,
  inspectedCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../worker/sandbox/syscalls/syscalls.ts";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { openBackend, sandboxUid } from "../integration/sandbox/sandbox-host.ts";
import { testPerProfile } from "../support/sandboxes/per-profile.ts";
import { type Rig, namespace, startRig, workerEnvironment } from "../support/workers/rig.ts";
import { WorkerProcess } from "../support/workers/worker-process.ts";

const run = promisify(execFile);
const fixtureTools = fileURLToPath(new URL("../fixtures/tools/", import.meta.url));

const { arch } = process;
const numberOf = (numbers: SyscallNumbers): number | undefined =>
  isFilteredArch(arch) ? numbers[arch] : undefined;
const refused = numbersByName(refusedCalls);
const unknown = numbersByName(unknownCalls);
const unfit = numbersByName(unfitCalls);
const inspected = numbersByName(inspectedCalls);

function numbersByName(calls: Readonly<Record<string, SyscallNumbers>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(calls).flatMap(([name, numbers]) => {
      const number = numberOf(numbers);
      return number === undefined ? [] : [[name, number]];
    }),
  );
}

const namespaceFlags = {
  mount: 0x0002_0000,
  cgroup: 0x0200_0000,
  uts: 0x0400_0000,
  ipc: 0x0800_0000,
  user: 0x1000_0000,
  pid: 0x2000_0000,
  net: 0x4000_0000,
};

/** The tools of system_calls.py with what they are called with. */
const attempts = {
  makes: { calls: { ...refused, ...unknown, ...unfit } },
  clones: { number: inspected["clone"] ?? -1, flags: namespaceFlags },
  asks_for_more: {
    clone: inspected["clone"] ?? -1,
    close_range: inspected["close_range"] ?? -1,
    fcntl_number: inspected["fcntl"] ?? -1,
    mmap_number: inspected["mmap"] ?? -1,
  },
  opens_sockets: {
    socket_number: inspected["socket"] ?? -1,
    pair_number: inspected["socketpair"] ?? -1,
  },
  sets_options: {
    prctl_number: inspected["prctl"] ?? -1,
    seccomp_number: inspected["seccomp"] ?? -1,
  },
  types_into_terminal: { ioctl_number: inspected["ioctl"] ?? -1 },
  changes_personality: { number: inspected["personality"] ?? -1 },
  opens_terminal: {},
  calls_otherwise: {},
  hides_memory: { secret_number: unknown["memfd_secret"] ?? -1 },
} as const;
type Attempt = keyof typeof attempts;

const keyCalls = {
  leaves_key: { add_key: refused["add_key"] ?? -1, description: "str-test-note" },
  finds_key: {
    keyctl: refused["keyctl"] ?? -1,
    request_key: refused["request_key"] ?? -1,
    description: "str-test-note",
  },
};

/**
 * The arguments of the session keyring's own calls, keyctl(2): join a new one, and give a key away.
 */
const keyrings = { join: 1, setPermissions: 5, session: -3, everybody: 0x3f3f_3f3f };

/**
 * A command line that runs what follows it with a session keyring that holds a key for everybody.
 */
const withSessionKeyring = [
  "/usr/bin/python3",
  "-c",
  `import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.syscall.restype = ctypes.c_long
keyctl, add_key = ${refused["keyctl"]}, ${refused["add_key"]}
ring = libc.syscall(keyctl, ${keyrings.join}, None)
key = libc.syscall(add_key, b"user", b"${keyCalls.finds_key.description}", b"note", 4, ${keyrings.session})
if -1 in (ring, key):
    sys.exit("no keyring")
for one in (key, ring):
    libc.syscall(keyctl, ${keyrings.setPermissions}, one, ${keyrings.everybody})
os.execvp(sys.argv[1], sys.argv[1:])
`,
];

const allOf = (names: readonly string[], outcome: string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, outcome]));

const toolName = (name: string, profile: string): string => `${name}_${profile}`;
const profiles = [...builtInProfiles.keys()];
const withTerminals = profiles.filter((name) => builtInProfiles.get(name)?.terminals);

function toolsForEveryProfile(names: readonly string[]) {
  return Object.fromEntries(
    profiles.flatMap((profile) =>
      names.map((name) => [
        toolName(name, profile),
        { module: "system_calls", function: name, sandbox_profile: profile },
      ]),
    ),
  );
}

describe("a tool", () => {
  let rig: Rig;

  beforeAll(async () => {
    const names = [...Object.keys(attempts), ...Object.keys(keyCalls), "filters", "works"];
    rig = await startRig({ tools: toolsForEveryProfile(names) });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function result<T = Record<string, string>>(tool: string, args = {}): Promise<T> {
    const answer = await rig.call(tool, args);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult as T;
  }
  const attempt = <T = Record<string, string>>(name: Attempt, profile: string) =>
    result<T>(toolName(name, profile), attempts[name]);

  describe("meets the filter:", () => {
    beforeEach((context) => context.skip(!isFilteredArch(arch), `there is none for ${arch}`));

    testPerProfile(
      "is refused every call of the list under %s",
      { tags: ["promise-S5", "promise-S20"] },
      async (profile) => {
        expect(Object.keys(refused).length).toBeGreaterThan(45);
        expect(await attempt("makes", profile)).toEqual({
          ...allOf(Object.keys(refused), "EPERM"),
          ...allOf(Object.keys(unknown), "ENOSYS"),
          ...allOf(Object.keys(unfit), "EINVAL"),
        });
      },
    );

    testPerProfile(
      "has no descriptors of a thread, no notes of others' reading and no huge pages under %s",
      { tags: "promise-C4" },
      async (profile) => {
        expect(await attempt("asks_for_more", profile)).toEqual({
          "a thread with descriptors of its own": "EPERM",
          "a thread with a directory of its own": "EPERM",
          // The kernel's own word for it.
          "a thread that shares them": "EINVAL",
          "descriptors of its own": "ENOSYS",
          "to close on exec": "done",
          "to close": "done",
          "notes of others' reading": "EINVAL",
          "a lease": "EINVAL",
          "huge pages": "ENOMEM",
          pages: "done",
        });
      },
    );

    testPerProfile(
      "holds no memory that no bound counts under %s",
      { tags: "promise-S19" },
      async (profile) => {
        expect(await attempt("hides_memory", profile)).toEqual(allOf(waysToHideMemory, "ENOSYS"));
      },
    );

    testPerProfile("clones no namespace under %s", async (profile) => {
      expect(await attempt("clones", profile)).toEqual(allOf(Object.keys(namespaceFlags), "EPERM"));
    });

    testPerProfile(
      "has sockets of four families and no others under %s",
      { tags: "promise-S5" },
      async (profile) => {
        const found = await attempt<Record<string, Record<string, string>>>(
          "opens_sockets",
          profile,
        );
        const notRefused = (call: string) =>
          Object.entries(found[call]!)
            .filter(([, outcome]) => outcome !== "EAFNOSUPPORT")
            .map(([family]) => Number(family));
        const families = { unix: 1, inet: 2, inet6: 10, netlink: 16 };
        expect(Object.values(families)).toEqual(expect.arrayContaining(notRefused("socket")));
        expect(found["socket"]).toMatchObject({ 1: "done", 2: "done" });
        expect(Object.values(families)).toEqual(expect.arrayContaining(notRefused("socketpair")));
        expect(found["socketpair"]).toMatchObject({ 1: "done" });
        const protocols = Object.entries(found["netlink"]!);
        expect(protocols.filter(([, outcome]) => outcome !== "EPROTONOSUPPORT")).toEqual([
          ["0", "done"],
        ]);
      },
    );

    testPerProfile(
      "has the kernel make no programs and no memory of its own by options under %s",
      { tags: "promise-S18" },
      async (profile) => {
        expect(await attempt("sets_options", profile)).toEqual({
          "slots for futexes": "EINVAL",
          "a bit above": "EINVAL",
          "a filter": "EINVAL",
          "a filter by its own call": "EINVAL",
          "a filter with a descriptor": "EINVAL",
          "to be hidden": "EINVAL",
          "to be seen": "done",
          "a program of a socket": "ENOPROTOOPT",
          "a program of sockets": "ENOPROTOOPT",
          "pages as they are": "ENOPROTOOPT",
          "memory ahead": "ENOPROTOOPT",
          "a signature": "ENOPROTOOPT",
          "another protocol": "ENOPROTOOPT",
          "no delay": "done",
          "to map what comes": "ENOPROTOOPT",
          "several paths": "EPROTONOSUPPORT",
          "in part without sums": "EPROTONOSUPPORT",
          TCP: "done",
        });
      },
    );

    test.each(withTerminals)(
      "types into no terminal, not even its own, under %s",
      { tags: "promise-S5" },
      async (profile) => {
        expect(await attempt("types_into_terminal", profile)).toEqual({
          TIOCSTI: "EPERM",
          "TIOCSTI with a bit above": "EPERM",
          TIOCLINUX: "EPERM",
          TIOCSETD: "EPERM",
          TCGETS: "done",
        });
      },
    );

    testPerProfile("switches no protection off by its personality under %s", async (profile) => {
      expect(await attempt("changes_personality", profile)).toEqual({
        asks: "done",
        PER_LINUX: "done",
        ADDR_NO_RANDOMIZE: "EPERM",
      });
    });

    testPerProfile(
      "is killed when it calls by another table of numbers under %s",
      { tags: "promise-S5" },
      async (profile, context) => {
        context.skip(arch !== "x64", `${arch} has one table`);
        expect(await attempt("calls_otherwise", profile)).toEqual({
          x32: "SIGSYS",
          // Kernels without that entry end the process by themselves.
          "int 0x80": expect.stringMatching(/^SIG(SYS|SEGV)$/),
        });
      },
    );

    testPerProfile(
      "shares it with every process of its sandbox under %s",
      { tags: "promise-S5" },
      async (profile) => {
        const found = await result(toolName("filters", profile));
        // bubblewrap's own process, the runner and the tool's child.
        expect(Object.keys(found)).toEqual(expect.arrayContaining(["1", "2"]));
        expect(Object.keys(found)).toHaveLength(3);
        expect(new Set(Object.values(found))).toEqual(new Set(["2"]));
      },
    );

    testPerProfile(
      "leaves no key for a later call under %s",
      { tags: "promise-C3" },
      async (profile) => {
        expect(await leaveAndFind((tool, args) => result(toolName(tool, profile), args))).toEqual(
          noKeys,
        );
      },
    );

    test(
      "finds and leaves none in the worker's session keyring either",
      { tags: ["full", "promise-C3"] },
      async (context) => {
        const control = await foundOutside();
        context.skip(control === "no keyring", "the host gives this process no keyring");
        // The same tool outside a sandbox finds the key: so could one inside without the filter.
        expect(control).toMatchObject({ session: "done" });

        await using other = await startWorkerWithKeyring(rig);
        expect(await leaveAndFind(other.call)).toEqual(noKeys);
      },
    );

    test(
      "and without it the kernel would have answered",
      { tags: ["full", "promise-S5", "promise-S18", "promise-S19"] },
      async (context) => {
        const bare = await bareSandbox(rig, context);

        const made = await bare("makes");
        const answered = Object.keys(made).filter((name) => made[name] !== "EPERM");
        expect(answered).toEqual(expect.arrayContaining(openToEverybody));
        const missing = Object.keys(unknown).filter((name) => made[name] === "ENOSYS");
        // Of the calls that the kernel may lack these are some that it may be told to lack.
        expect(["memfd_secret", ...memoryNodeCalls]).toEqual(expect.arrayContaining(missing));
        expect(Object.keys(unfit).map((name) => made[name])).toEqual(
          Object.keys(unfit).map(() => "EBADF"),
        );
        expect(await bare("asks_for_more")).toMatchObject({
          "a thread with descriptors of its own": "EINVAL",
          "descriptors of its own": "done",
          "notes of others' reading": "done",
          // There is none to give back.
          "a lease": "EAGAIN",
        });
        expect(await bare("hides_memory")).toMatchObject({
          "an unmapped file in memory": "held",
          "shared memory of System V": "held",
          "a message queue of System V": "held",
          "semaphores of System V": "held",
        });

        expect(Object.values(await bare("clones"))).not.toContain("EPERM");
        // A packet socket needs a capability.
        expect(await bare("opens_sockets")).toMatchObject({
          socket: { 17: "EPERM" },
          // Generic netlink.
          netlink: { 16: "done" },
        });
        expect(await bare("sets_options")).toMatchObject({
          // Kernels before 6.16 know none.
          "slots for futexes": expect.stringMatching(/^(done|EINVAL)$/),
          "a filter": "done",
          "a filter by its own call": "done",
          "a filter with a descriptor": "done",
          "to be hidden": "done",
          "a program of a socket": "done",
          "pages as they are": "done",
          // It knows none of that name, or none at all.
          "another protocol": expect.stringMatching(/^(ENOENT|ENOTCONN|EPERM)$/),
          "in part without sums": expect.stringMatching(/^(done|EPROTONOSUPPORT)$/),
        });
        expect(await bare("types_into_terminal")).toMatchObject({
          // Hosts with dev.tty.legacy_tiocsti 0 refuse it by themselves.
          TIOCSTI: expect.stringMatching(/^(done|EIO)$/),
          "TIOCSTI with a bit above": "ENOTTY",
          TIOCLINUX: "ENOTTY",
          TIOCSETD: "done",
        });
        expect(await bare("changes_personality")).toMatchObject({ ADDR_NO_RANDOMIZE: "done" });
        if (arch === "x64") expect(await bare("calls_otherwise")).toMatchObject({ x32: "went on" });
      },
    );
  });

  testPerProfile(
    "opens pseudo terminals where the profile %s has them",
    { tags: "promise-S20" },
    async (profile) => {
      const has = withTerminals.includes(profile);
      expect(await result(toolName("opens_terminal", profile))).toEqual({
        "/dev": has ? ["ptmx", "pts"] : [],
        "/dev/ptmx": has ? "opened" : "ENOENT",
        "/dev/pts/ptmx": has ? "opened" : "ENOENT",
      });
    },
  );

  testPerProfile("does all that tools do under %s", { tags: "promise-S5" }, async (profile) => {
    const hasHostNetwork = builtInProfiles.get(profile)!.network === "host";
    const done = await result<Record<string, unknown>>(toolName("works", profile));
    expect(done).toEqual({
      threads: 28,
      posix_spawn: 7,
      "subprocess by vfork": "said\n",
      "subprocess by fork": "said\n",
      "subprocess by posix_spawn": "said\n",
      "a pipeline of a shell": "0ne\n",
      asyncio: "said\n7",
      "multiprocessing by fork": 3,
      "multiprocessing by spawn": 3,
      socketpair: "said",
      "a unix socket": "connected",
      "a loopback socket": "connected",
      // Without a network there is no hosts file to know it from.
      getaddrinfo: hasHostNetwork ? true : expect.anything(),
      if_nameindex: true,
      sqlite3: 3,
      "tempfile and mmap": 4,
      "a copied file": "said",
      "a file over a socket": "said",
      "a lock on a shared file": "locked",
      ssl: "SSLContext",
      alarm: ["rung"],
      "callbacks of ctypes": [1, 2, 3],
      "shared memory": 3,
      sleep: null,
      OpenMP: hasOpenMp ? 4 : expect.anything(),
      sched_getaffinity: true,
    });
  });
});

/** The library is there where a compiler or a numerical library of the distribution is. */
const hasOpenMp = [
  "/usr/lib",
  "/usr/lib64",
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
].some((directory) => existsSync(`${directory}/libgomp.so.1`));

/** Calls that the kernel itself refuses to nobody, so that only the filter can have. */
const openToEverybody = [
  "unshare",
  "setns",
  "mount",
  "umount2",
  "chroot",
  "open_tree",
  "mount_setattr",
  "ptrace",
  "process_vm_readv",
  "process_vm_writev",
  "kcmp",
  "pidfd_getfd",
  "process_madvise",
  "name_to_handle_at",
  "clock_settime",
  "adjtimex",
  "clock_adjtime",
  "fanotify_mark",
  "process_mrelease",
  "sched_setaffinity",
  "iopl",
  "ioperm",
].filter((name) => name in refused);

/** Calls that only kernels for machines with several nodes of memory have. */
const memoryNodeCalls = [
  ...["mbind", "set_mempolicy", "get_mempolicy", "migrate_pages", "move_pages"],
  "set_mempolicy_home_node",
];

/** What `hides_memory` tries. */
const waysToHideMemory = [
  "an unmapped file in memory",
  "a secret file in memory",
  "shared memory of System V",
  "a message queue of System V",
  "semaphores of System V",
];

const noKeys = {
  left: allOf(["thread", "process", "session", "user", "user session"], "EPERM"),
  found: allOf(["thread", "process", "session", "user", "user session", "request"], "EPERM"),
};

/** Two calls, the second after the first. */
async function leaveAndFind(
  call: (tool: string, args: object) => Promise<unknown>,
): Promise<{ readonly left: unknown; readonly found: unknown }> {
  const left = await call("leaves_key", keyCalls.leaves_key);
  return { left, found: await call("finds_key", keyCalls.finds_key) };
}

/**
 * What `finds_key` finds in a process that inherited a session keyring; `no keyring` where there
 * can be none.
 */
async function foundOutside(): Promise<unknown> {
  const program =
    "import json, sys, system_calls; print(json.dumps(system_calls.finds_key(**json.loads(sys.argv[1]))))";
  const argv = [
    ...withSessionKeyring.slice(1),
    ...["/usr/bin/python3", "-B", "-c", program, JSON.stringify(keyCalls.finds_key)],
  ];
  return run(withSessionKeyring[0]!, argv, { cwd: fixtureTools }).then(
    ({ stdout }) => JSON.parse(stdout) as unknown,
    (error: { readonly stderr: string }) => {
      if (error.stderr.trim() === "no keyring") return "no keyring";
      throw error;
    },
  );
}

/** A second worker on the rig's broker and files, in a process that has a session keyring. */
async function startWorkerWithKeyring(rig: Rig) {
  await using owned = new AsyncDisposableStack();
  const other = `${namespace}-keyring`;
  const base = join(rig.manifestPath, "..", "keyring");
  await mkdir(base);
  const environment = {
    ...workerEnvironment(rig.broker, base, rig.manifestPath, rig.toolsDir),
    SAM_NAMESPACE: other,
  };
  const worker = owned.use(new WorkerProcess(environment, [], withSessionKeyring));
  await worker.says("worker.ready");
  const { host, port } = rig.broker;
  const agent = owned.use(
    await Agent.connect({ host, port, namespace: other }, AbortSignal.timeout(30_000)),
  );
  const all = owned.move();
  return {
    async call(this: void, tool: string, args: object): Promise<unknown> {
      const answer = await agent.call({
        tool: toolName(tool, "standard"),
        args: { ...args },
        userId: "user-42",
        sessionId: "web-1",
        timeoutSeconds: 30,
      });
      return answer.kind === "success" ? answer.toolResult : answer;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Makes attempts in a sandbox like a tool's, but without the filter. */
async function bareSandbox(rig: Rig, context: Parameters<typeof openBackend>[0]) {
  const backend = await openBackend(context);
  const { proc, limitsNested, namesHost, systemDirectories } = backend.host;
  const workDir = join(backend.scratchDir, "bare");
  await mkdir(workDir);
  onTestFinished(async () => {
    await rm(workDir, { recursive: true, force: true });
    await backend[Symbol.asyncDispose]();
  });
  const program =
    "import json, sys, system_calls; print(json.dumps(getattr(system_calls, sys.argv[1])(**json.loads(sys.argv[2]))))";
  return async (name: Attempt): Promise<Record<string, unknown>> => {
    const execution = await startBwrap(
      {
        bwrapBin: "/usr/bin/bwrap",
        ownerTag: "str-sandbox-of-a-test",
        uid: sandboxUid,
        seccomp: undefined,
        placement: [],
        openUsage: undefined,
        argv: ["/usr/bin/python3", "-B", "-c", program, name, JSON.stringify(attempts[name])],
        options: bwrapOptions({
          profile: { ...builtInProfiles.get("restrictive")!, terminals: true },
          proc,
          limitsNested,
          namesHost,
          systemDirectories,
          workDir,
          mounts: [{ source: rig.toolsDir, target: "/tools/python" }],
          devices: [],
          environment: new Map([["PYTHONPATH", "/tools/python"]]),
        }),
      },
      systemClock,
    );
    const { exitCode, stdout, stderr } = await execution.exited;
    if (exitCode !== 0) throw new Error(stderr.text);
    return JSON.parse(stdout.text) as Record<string, unknown>;
  };
}
