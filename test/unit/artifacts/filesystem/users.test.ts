/**
 * A store that a worker and an agent share under different users. Both are real processes of real
 * users.
 */
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { temporaryDirectory } from "../fixtures.ts";
import { isRoot } from "../../../support/is-root.ts";

const workerUid = 61_000;
const agentUid = 62_000;
const sharedGid = 63_000;
const session = "ed_test/user-42/web-1";

interface User {
  readonly uid: number;
  /** A group besides the user's own. */
  readonly group?: number;
}

/** The arguments of setpriv(1) with which a command runs as another user. */
function as({ uid, group }: User, ...command: string[]): string[] {
  const groups = group === undefined ? "--clear-groups" : `--groups=${group}`;
  return [`--reuid=${uid}`, `--regid=${uid}`, groups, ...command];
}

/** A process of another user that uses stores as a worker does. */
class WorkerUser implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #answers: AsyncIterator<string>;

  constructor({ uid, group }: User) {
    const program = join(import.meta.dirname, "store-user.ts");
    const groups = group === undefined ? [uid] : [uid, group];
    const args = [program, String(uid), groups.join()];
    this.#process = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#answers = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  save(umask: string, base: string, filename: string): Promise<unknown> {
    return this.#ask([umask, base, filename]);
  }

  problems(base: string): Promise<unknown> {
    return this.#ask(["022", base, null]);
  }

  async #ask(question: unknown): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    return JSON.parse(String((await this.#answers.next()).value)) as unknown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    if (this.#process.exitCode === null) await once(this.#process, "exit");
  }
}

/** Saves a version as an agent of the original does: directories as they come, files in place. */
async function agentSaves(user: User, umask: string, base: string, path: string): Promise<void> {
  const save = `umask $1; mkdir -p "$(dirname "$2")" && echo agent > "$2" && echo '{"mime_type": "a/b"}' > "$2.meta"`;
  await promisify(execFile)("setpriv", as(user, "sh", "-c", save, "sh", umask, join(base, path)));
}

async function newBase(gid: number, mode: number): Promise<string> {
  const around = await temporaryDirectory();
  await chmod(around, 0o755);
  const base = join(around, "base");
  await mkdir(base);
  await chown(base, 0, gid);
  await chmod(base, mode);
  return base;
}

async function modeOf(path: string): Promise<string> {
  const { mode, gid } = await stat(path);
  return `${(mode & 0o7777).toString(8)} ${gid}`;
}

describe("a store that worker and agent share under different users", () => {
  const agent = { uid: agentUid };
  const memberAgent = { uid: agentUid, group: sharedGid };
  let worker: WorkerUser;
  let member: WorkerUser;

  beforeEach(({ skip }) => {
    skip(!isRoot, "only root can start processes of two users");
  });
  beforeAll(() => {
    if (!isRoot) return undefined;
    worker = new WorkerUser({ uid: workerUid });
    member = new WorkerUser({ uid: workerUid, group: sharedGid });
    return async () => {
      await worker[Symbol.asyncDispose]();
      await member[Symbol.asyncDispose]();
    };
  });

  test("lets the agent save wherever the worker was first, whatever the worker's umask", async () => {
    const base = await newBase(0, 0o2777);
    expect(await worker.save("077", base, "report.csv")).toBe(0);

    expect(await worker.problems(base)).toEqual([]);
    await agentSaves(agent, "022", base, `${session}/report.csv/1`);
    await agentSaves(agent, "022", base, `${session}/upload.csv/0`);
    await agentSaves(agent, "022", base, "ed_test/user-42/web-2/upload.csv/0");
    await agentSaves(agent, "022", base, "ed_test/user-43/web-1/upload.csv/0");
  });

  test("lets both save in any order where a group owns it and the agent's umask leaves the group its rights", async () => {
    const base = await newBase(sharedGid, 0o2770);

    await agentSaves(memberAgent, "002", base, `${session}/upload.csv/0`);
    expect(await member.save("077", base, "upload.csv")).toBe(1);
    expect(await member.save("077", base, "report.csv")).toBe(0);
    await agentSaves(memberAgent, "002", base, `${session}/report.csv/1`);

    expect(await member.problems(base)).toEqual([]);
    expect(await modeOf(join(base, session, "report.csv"))).toBe(`2770 ${sharedGid}`);
    expect(await modeOf(join(base, session, "report.csv/0"))).toBe(`664 ${sharedGid}`);
    expect(await modeOf(join(base, session, "report.csv/0.meta"))).toBe(`664 ${sharedGid}`);
  });

  test("is shared without the setgid bit too, and so is a worker's directory from before it had that", async () => {
    const base = await newBase(sharedGid, 0o770);
    await member.save("022", base, "report.csv");
    expect(await modeOf(join(base, session))).toBe(`770 ${sharedGid}`);

    await chmod(base, 0o2770);
    await member.save("022", base, "report.csv");
    expect(await modeOf(join(base, session))).toBe(`2770 ${sharedGid}`);
  });

  test("is closed to the worker where the agent's umask is the usual one, and the check says so", async () => {
    const base = await newBase(sharedGid, 0o2770);
    await agentSaves(memberAgent, "022", base, `${session}/upload.csv/0`);

    expect(await member.save("022", base, "report.csv")).toMatch(
      /the artifact store denies access/,
    );
    expect(await member.problems(base)).toEqual([
      'The worker (uid 61000) cannot write to 4 directories, such as "ed_test" (uid 62000, gid 63000, mode 2755): outputs there end in ARTIFACT_ERROR',
    ]);
  });

  test("is closed to the agent where the worker's directories are, and the check says so", async () => {
    const base = await newBase(0, 0o777);
    await worker.save("022", base, "report.csv");
    await chmod(join(base, session), 0o755);
    await agentSaves(agent, "000", base, "other/user-42/web-1/upload.csv/0");

    expect(await worker.problems(base)).toEqual([
      'uid 62000, which owns directories here, cannot write to 1 directory, such as "ed_test/user-42/web-1" (uid 61000, gid 61000, mode 0755) of the worker (uid 61000): what it saves there fails',
    ]);
  });

  test("needs a worker that is a member of its group, and the check says so", async () => {
    const base = await newBase(sharedGid, 0o2770);
    await chown(base, workerUid, sharedGid);

    expect(await worker.problems(base)).toEqual([
      expect.stringMatching(/^The worker \(uid 61000\) is no member of group 63000/),
    ]);
  });
});
