/**
 * Setup brings a machine to where the commands run, does nothing twice, and says what it may not do
 * itself.
 *
 * npm, apt-get and sudo are small programs of this test, because the real ones would change the
 * machine.
 */
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
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { olderNode, ownNode, root, run, userEnvironment, type Ending } from "./processes.ts";

/**
 * A checkout with the real scripts and a small lock file, and a directory that is first on the
 * path.
 */
let base: string;
const checkout = (): string => join(base, "checkout");
const tools = (): string => join(base, "tools");
const calls = (): readonly string[] =>
  existsSync(join(base, "calls"))
    ? readFileSync(join(base, "calls"), "utf8").trimEnd().split("\n")
    : [];

const lockedPackages = {
  "": { name: "it" },
  "node_modules/node": { version: "24.0.0", integrity: "sha512-node" },
  "node_modules/one": { version: "1.0.0", integrity: "sha512-one" },
  "node_modules/other-platform": { version: "1.0.0", integrity: "sha512-other", optional: true },
};

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "setup-"));
  mkdirSync(tools());
  mkdirSync(checkout());
  cpSync(join(root, "scripts"), join(checkout(), "scripts"), { recursive: true });
  writeLock("package-lock.json", lockedPackages);
  putTool(
    "npm",
    `mkdir -p node_modules/node/bin
     touch node_modules/node/bin/node
     cp package-lock.json node_modules/.package-lock.json`,
  );
});

afterEach(() => {
  rmSync(base, { recursive: true });
});

function writeLock(file: string, packages: object): void {
  writeFileSync(join(checkout(), file), JSON.stringify({ lockfileVersion: 3, packages }));
}

/**
 * Puts a shell program first on the path; it notes each call in the file `calls`. A registry
 * answers npm.
 */
function putTool(name: string, script: string): void {
  const file = join(tools(), name);
  const registry = name === "npm" ? `test "$1" != view || exit 0` : "";
  writeFileSync(file, `#!/bin/sh\n${registry}\necho "${name} $*" >> ${base}/calls\n${script}\n`);
  chmodSync(file, 0o755);
}

const withTools = (): Record<string, string> =>
  userEnvironment({ PATH: [tools(), userEnvironment()["PATH"]].join(delimiter) });

const setUp = (mode: string, node = ownNode): Promise<Ending> =>
  run(node, [join(checkout(), "scripts", "setup.mjs"), mode], { env: withTools(), cwd: base });

/** How npm is called, whatever the registry is like. */
const install = "npm ci --include=dev --loglevel=error --no-update-notifier";

describe("npm packages", () => {
  test("are installed into a fresh checkout, and then left alone without a word", async () => {
    expect(await setUp("packages")).toMatchObject({ status: 0 });
    expect(calls()).toEqual([`${install} --fetch-timeout=60000 --fetch-retries=4`]);
    expect(await setUp("packages")).toMatchObject({ status: 0, stdout: "", stderr: "" });
    expect(calls()).toHaveLength(1);
  });

  test("are installed by the Node that the machine has", async ({ skip }) => {
    expect(await setUp("packages", olderNode(skip))).toMatchObject({ status: 0 });
    expect(calls()).toHaveLength(1);
  });

  test("of another platform are not missed", { tags: "full" }, async () => {
    await setUp("packages");
    const { "node_modules/other-platform": _, ...installed } = lockedPackages;
    writeLock("node_modules/.package-lock.json", installed);
    await setUp("packages");
    expect(calls()).toHaveLength(1);
  });

  type Change = readonly [what: string, packages: object];
  const version: Change = [
    "a version changed",
    { ...lockedPackages, "node_modules/one": { version: "1.0.1" } },
  ];
  const number: readonly Change[] = [
    ["one was added", { ...lockedPackages, "node_modules/two": { version: "1.0.0" } }],
    ["one was removed", { "node_modules/node": lockedPackages["node_modules/node"] }],
  ];
  const areInstalledAgain = async ([, packages]: Change): Promise<void> => {
    await setUp("packages");
    writeLock("package-lock.json", packages);
    expect(await setUp("packages")).toMatchObject({ status: 0 });
    expect(calls()).toHaveLength(2);
  };
  test.for([version])("are installed again when %s", areInstalledAgain);
  test.for(number)("are installed again when %s", { tags: "full" }, areInstalledAgain);

  test("are installed once when two commands start at once", { tags: "full" }, async () => {
    putTool(
      "npm",
      `mkdir ${base}/busy || echo overlap >> ${base}/calls
       sleep 0.3
       mkdir -p node_modules/node/bin
       touch node_modules/node/bin/node
       cp package-lock.json node_modules/.package-lock.json
       rmdir ${base}/busy`,
    );
    const endings = await Promise.all([setUp("packages"), setUp("packages"), setUp("packages")]);
    expect(endings.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(calls()).toHaveLength(1);
  });

  test("that npm cannot install are tried twice, the second time with npm's own patience, and then setup fails", async () => {
    putTool("npm", "echo registry away >&2; exit 1");
    const ending = await setUp("packages");
    expect(ending.status).toBe(69);
    expect(ending.stderr).toContain("registry away");
    expect(ending.stderr).toContain("setup: npm ci failed 2 times");
    expect(calls()).toEqual([expect.stringContaining(" --fetch-timeout="), install]);
  });

  test("whose install scripts did not run leave no Node 24, and setup says so", async () => {
    putTool("npm", "mkdir -p node_modules; cp package-lock.json node_modules/.package-lock.json");
    const ending = await setUp("packages");
    expect(ending.status).toBe(69);
    expect(ending.stderr).toContain("npm rebuild node --ignore-scripts=false");
  });
});

describe("Debian packages", () => {
  /** Sets up in a machine whose /usr/bin holds only what setup itself starts. */
  function setUpBareMachine(uid: number): Promise<Ending> {
    const programs = ["env", "flock", "mkdir", "touch", "cp", "chmod", "sh", "cat"];
    return run(
      "bwrap",
      [
        ["--dev-bind", "/", "/", "--unshare-user", "--uid", String(uid), "--tmpfs", "/usr/bin"],
        programs.flatMap((name) => ["--ro-bind", `/usr/bin/${name}`, `/usr/bin/${name}`]),
        [ownNode, join(checkout(), "scripts", "setup.mjs"), "demo"],
      ].flat(),
      { env: withTools() },
    );
  }

  /** An apt-get that, like that of a fresh machine, knows no package before its first update. */
  const apt = (): string =>
    `case "$*" in
       *update) touch ${base}/lists ;;
       *install*)
         test -e ${base}/lists || { echo "E: Unable to locate package" >&2; exit 100; }
         touch /usr/bin/pydoc3 /usr/bin/prlimit
         printf '#!/bin/sh\\necho bubblewrap 0.8.0\\n' > /usr/bin/bwrap
         chmod 755 /usr/bin/bwrap ;;
     esac`;

  test("are named, with the command that installs them, to a user who may not", async () => {
    const ending = await setUpBareMachine(1000);
    expect(ending.status).toBe(69);
    expect(ending.stderr).toContain("missing: bubblewrap, python3, util-linux (looked for");
    expect(ending.stderr).toContain(
      "  apt-get update && apt-get install --yes --no-install-recommends bubblewrap python3 util-linux",
    );
  });

  test.for([
    ["root", 0, []],
    ["a user with sudo and no password", 1000, ["sudo -n true", "sudo -n env"]],
  ] as const)("are installed by %s, after an update where needed", async ([, uid, sudo]) => {
    putTool("apt-get", apt());
    putTool("sudo", `shift; test "$1" = true || exec "$@"`);
    if (uid === 0) rmSync(join(tools(), "sudo"));
    expect(await setUpBareMachine(uid)).toMatchObject({ status: 0 });
    const apts = calls().filter((call) => /^apt-get .*(update|install)/.test(call));
    expect(apts.map((call) => /update|install/.exec(call)?.[0])).toEqual([
      "install",
      "update",
      "install",
    ]);
    for (const start of sudo) expect(calls().some((call) => call.startsWith(start))).toBe(true);
  });
});

describe("the sandbox", () => {
  const setUpWith = (...bwrapArgs: readonly string[]): Promise<Ending> =>
    run(
      "bwrap",
      [
        ...["--dev-bind", "/", "/", "--unshare-user", ...bwrapArgs],
        ...[ownNode, join(checkout(), "scripts", "setup.mjs"), "demo"],
      ],
      { env: withTools() },
    );

  test("is refused when the kernel allows no user namespaces, with what lifts that", async () => {
    const ending = await setUpWith("--disable-userns");
    expect(ending.status).toBe(69);
    expect(ending.stderr).toContain("setup: bubblewrap cannot make a sandbox here: bwrap:");
  });

  test("needs a bubblewrap that is new enough", async () => {
    putTool("old-bwrap", "echo bubblewrap 0.4.1");
    const ending = await setUpWith("--ro-bind", join(tools(), "old-bwrap"), "/usr/bin/bwrap");
    expect(ending.status).toBe(69);
    expect(ending.stderr).toContain(
      `0.8 or newer is needed; /usr/bin/bwrap says "bubblewrap 0.4.1"`,
    );
  });
});

test("an unknown set is refused by its name", async () => {
  const ending = await setUp("tset");
  expect(ending.status).toBe(69);
  expect(ending.stderr).toContain(`unknown set "tset"; known: packages, demo, test`);
});
