/**
 * Setup brings RabbitMQ without any service that runs, now or at the next boot, and goes on where
 * it may not.
 *
 * apt-get and systemctl are small programs of this test; the files of the packages are in
 * directories of its own.
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
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Ending, ownNode, root, run, userEnvironment } from "./processes.ts";

/** Where packages put what setup looks at: each is replaced by a directory or file of the test. */
const replaced = [
  "/usr/lib/rabbitmq",
  "/usr/lib/systemd/system",
  "/usr/sbin",
  "/usr/bin/systemctl",
];
const missing = replaced.find((path) => !existsSync(path));
const server = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/** Holds a checkout whose npm packages are current. */
let base: string;
const checkout = (): string => join(base, "checkout");

beforeEach(({ skip }) => {
  skip(missing !== undefined, `${missing} is not there, where a directory of the test would be`);
  base = mkdtempSync(join(tmpdir(), "setup-services-"));
  for (const name of ["rabbitmq", "system", "sbin", "tools"]) mkdirSync(join(base, name));
  cpSync(join(root, "scripts"), join(checkout(), "scripts"), { recursive: true });
  const node = join(checkout(), "node_modules", "node", "bin", "node");
  mkdirSync(dirname(node), { recursive: true });
  writeFileSync(node, "");
  for (const lock of ["package-lock.json", "node_modules/.package-lock.json"]) {
    writeFileSync(join(checkout(), lock), '{ "packages": {} }');
  }
  // epmd was there before: its user may want it.
  writeFileSync(join(base, "system", "epmd.socket"), "");
  putProgram("systemctl", "");
  putProgram(
    "tools/apt-get",
    `case "$*" in *install*)
       /usr/sbin/policy-rc.d rabbitmq-server start
       echo "start: $?" >> ${base}/calls
       mkdir /usr/lib/rabbitmq/bin
       touch ${server} /usr/lib/systemd/system/rabbitmq-server.service ;;
     esac`,
  );
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function putProgram(name: string, script: string): void {
  const file = join(base, name);
  const own = name.replace(/.*\//, "");
  writeFileSync(file, `#!/bin/sh\necho "${own} $*" >> ${base}/calls\n${script}\n`);
  chmodSync(file, 0o755);
}

const calls = (): readonly string[] =>
  existsSync(join(base, "calls")) ? readFileSync(join(base, "calls"), "utf8").split("\n") : [];

function setUp(uid = 0): Promise<Ending> {
  const own = ["rabbitmq", "system", "sbin", "systemctl"];
  // Setup checks that its user can make a sandbox: root needs its capabilities for that.
  const capabilities = uid === 0 ? ["--cap-add", "ALL"] : [];
  const binds = replaced.flatMap((path, index) => ["--bind", join(base, own[index]!), path]);
  return run(
    "bwrap",
    [
      ...[
        "--dev-bind",
        "/",
        "/",
        "--unshare-user",
        "--uid",
        String(uid),
        ...capabilities,
        ...binds,
      ],
      ...[ownNode, join(checkout(), "scripts", "setup.mjs"), "test"],
    ],
    {
      env: userEnvironment({
        PATH: [join(base, "tools"), userEnvironment()["PATH"]].join(delimiter),
      }),
    },
  );
}

test("RabbitMQ is installed while no service may start, and only what came with it is disabled", async () => {
  expect(await setUp()).toMatchObject({ status: 0 });
  expect(calls()).toContain("start: 101");
  expect(calls()).toContain("systemctl disable rabbitmq-server.service");
  expect(existsSync(join(base, "sbin", "policy-rc.d"))).toBe(false);
  expect(await setUp()).toMatchObject({ status: 0, stderr: "" });
});

test("a policy that forbids services is used and left as it is", { tags: "full" }, async () => {
  putProgram("sbin/policy-rc.d", "exit 101");
  const before = readFileSync(join(base, "sbin", "policy-rc.d"));
  expect(await setUp()).toMatchObject({ status: 0 });
  expect(calls()).toContain("start: 101");
  expect(readFileSync(join(base, "sbin", "policy-rc.d"))).toEqual(before);
});

test(
  "with a policy that allows services nothing is installed, and setup goes on",
  { tags: "full" },
  async () => {
    putProgram("sbin/policy-rc.d", "exit 0");
    const ending = await setUp();
    expect(ending).toMatchObject({ status: 0 });
    expect(ending.stderr).toContain("going on without rabbitmq-server: ");
    expect(ending.stderr).toContain("policy-rc.d allows services to start");
    expect(calls().filter((call) => call.includes("install"))).toEqual([]);
  },
);

test("a user who may not install is told how, and setup goes on", async () => {
  const ending = await setUp(1000);
  expect(ending).toMatchObject({ status: 0 });
  expect(ending.stderr).toContain("going on without rabbitmq-server: missing: rabbitmq-server");
  expect(ending.stderr).toContain(
    "systemctl disable --now rabbitmq-server.service epmd.service epmd.socket",
  );
});
