/**
 * What is planted for attacks can be reached by who is not kept from it, and is gone afterwards.
 */
import { readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { type NetConnectOpts, connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Canaries, plantCanaries } from "../../../worker/doctor/attacks/canaries.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";
import { isRoot } from "../../support/is-root.ts";

const uid = isRoot ? 60_001 : undefined;

async function base(): Promise<string> {
  const directory = await reachableDirectory();
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function say(where: NetConnectOpts): Promise<string> {
  return text(connect(where));
}

function services({ target }: Canaries): readonly NetConnectOpts[] {
  return [
    { host: "127.0.0.1", port: target.loopbackPort },
    { host: "127.0.0.1", port: target.unlistedPort },
    { path: target.socketPath },
    { path: `\0${target.abstractSocket}` },
  ];
}

describe("what is planted", () => {
  test("says the token to everybody", async () => {
    await using canaries = await plantCanaries([await base()], uid);
    const { target, token } = canaries;
    expect(await readFile(target.secretFile, "utf8")).toBe(token);
    expect((await stat(target.secretFile)).mode & 0o777).toBe(0o644);
    expect((await stat(target.openDirectory)).mode & 0o777).toBe(0o777);
    for (const service of services(canaries)) expect(await say(service)).toBe(token);
    for (const file of ["environ", "cmdline"])
      expect(await readFile(`/proc/${target.siblingPid}/${file}`, "utf8")).toContain(token);
    expect((await stat(`/proc/${target.siblingPid}`)).uid).toBe(uid ?? process.getuid?.());
  });

  test("answers by the names that all requests of a connection ask for", async () => {
    await using canaries = await plantCanaries([await base()], uid);
    const { token, target } = canaries;
    const ask = (...requests: readonly string[]): Promise<string> => {
      const socket = connect({ host: "127.0.0.1", port: target.listedPort });
      socket.write(requests.join(""));
      return text(socket);
    };
    const request = (host: string, path = "/", end = "Connection: close"): string =>
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${end}\r\n\r\n`;
    const { listedName, unlistedName } = target;
    expect(await ask(listedName)).toBe("listed");
    expect(await ask(unlistedName)).toBe(token);
    expect(await ask(request(listedName))).toContain("listed");
    expect(await ask(request(unlistedName))).toContain(token);
    const both = [request(listedName, "/", "Connection: keep-alive"), request(unlistedName)];
    expect(await ask(...both)).not.toContain("listed");
    expect(await ask(request(listedName, "/?to=http://127.0.0.1:1/"))).toContain(
      "Location: http://127.0.0.1:1/\r\n",
    );
  });

  test("is gone when it is disposed of, with a token that is not used again", async () => {
    const directory = await base();
    const canaries = await plantCanaries([directory], uid);
    await canaries[Symbol.asyncDispose]();
    expect(await readdir(directory)).toEqual([]);
    await expect(stat(`/proc/${canaries.target.siblingPid}`)).rejects.toThrow(/ENOENT/);
    for (const service of services(canaries)) await expect(say(service)).rejects.toThrow();
    await using other = await plantCanaries([directory], uid);
    expect(other.token).not.toBe(canaries.token);
  });

  test("lies in the first directory that can be written to", async () => {
    const directory = await base();
    const file = join(directory, "file");
    await writeFile(file, "");
    const usable = await base();
    await using canaries = await plantCanaries([file, usable, directory], uid);
    expect(canaries.directory.startsWith(usable)).toBe(true);
    await expect(plantCanaries([file], uid)).rejects.toThrow(/no directory/);
  });
});
