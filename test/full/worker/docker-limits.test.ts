/**
 * Limits of containers, and what the daemon has of workers that died.
 *
 * @module-tag full
 */
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { openDocker } from "../../../worker/sandbox/docker/backend.ts";
import { workerLabel } from "../../../worker/sandbox/docker/container.ts";
import { EngineClient } from "../../../worker/sandbox/docker/engine/client.ts";
import { Engine } from "../../../worker/sandbox/docker/engine/containers.ts";
import { openImage } from "../../../worker/sandbox/docker/image.ts";
import { systemDirectories } from "../../../worker/sandbox/proc/host.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import {
  backendOptions,
  never,
  request,
  runScript,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { openDockerd } from "../../support/containers/daemon.ts";
import { shared } from "../../support/shared.ts";

const daemon = shared(openDockerd);
const MiB = 1024 * 1024;

async function open(context: TestContext) {
  const { socket: dockerSocket } = await daemon(context);
  const base = await temporaryDirectory();
  const options = { ...backendOptions(join(base, "work")), dockerSocket };
  const backend = await openDocker(options);
  onTestFinished(() => backend[Symbol.asyncDispose]());
  const engine = new Engine(new EngineClient(dockerSocket, systemClock));
  return { backend, engine, options };
}

async function run(context: TestContext, script: string, limits: object, memoryBound = "resident") {
  const { backend } = await open(context);
  const profile = {
    ...restrictiveProfile,
    limits: { ...restrictiveProfile.limits, ...limits },
  };
  const bound = memoryBound as "resident";
  await using sandbox = await backend.acquire(request({ profile, memoryBound: bound }), never);
  return { sandbox, report: await runScript(sandbox, script) };
}

const holds = `/usr/bin/python3 -c 'x = b"x" * (256 << 20); print(len(x))'`;

describe("a container", () => {
  test("has its memory, which the kernel bounds", async (context) => {
    const limits = { memoryBytes: 64 * MiB };
    const { report, sandbox } = await run(context, `${holds}; kill -KILL $$`, limits);
    expect(sandbox.enforcement).toMatchObject({ memoryBytes: "kernel", processes: "kernel" });
    expect(report).toMatchObject({ exceeded: { limit: "memoryBytes", bound: 64 * MiB } });
    expect(report.stdout.text).toBe("");
  });

  test("has processes of one address space each", async (context) => {
    const limits = { memoryBytes: 64 * MiB };
    const { report } = await run(context, holds, limits, "address-space");
    expect(report).toMatchObject({ exitCode: 1, exceeded: undefined });
    expect(report.stderr.text).toContain("MemoryError");
  });

  test("has so many processes", async (context) => {
    const script = "i=0; while [ $i -lt 40 ]; do sleep 1 & i=$((i + 1)); done; wait";
    const { report } = await run(context, script, { processes: 16 });
    expect(report.stderr.text).toMatch(/Cannot fork|Resource temporarily unavailable/);
  });

  test("has a work directory and a /tmp of bounded size", async (context) => {
    const fill = "head -c 40000000 /dev/zero > ";
    const { report: tmp } = await run(context, `${fill} /tmp/file`, { tmpBytes: 16 * MiB });
    expect(tmp.stderr.text).toContain("No space left");
    const { report: disk } = await run(context, `${fill} output/file; sleep 20`, {
      diskBytes: 16 * MiB,
    });
    expect(disk).toMatchObject({ exceeded: { limit: "diskBytes" }, signal: "SIGKILL" });
  });

  test("has its processor time, with what its processes used", async (context) => {
    const spin = "while :; do :; done";
    const { report } = await run(context, `(${spin}) & ${spin}`, { cpuSeconds: 1, cpus: 2 });
    expect(report).toMatchObject({ exceeded: { limit: "cpuSeconds" } });
    expect(report.usage.cpuMs).toBeGreaterThan(500);
    expect(report.usage.peakMemoryBytes).toBeGreaterThan(0);
  });

  test("has no privileges, no devices, no network, and a root directory that it cannot change", async (context) => {
    const script = `
      grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
      ls /sys/class/net; touch /etc/x /usr/x /x 2>&1; cat /etc/passwd 2>&1`;
    const { report } = await run(context, script, {});
    expect(report.stdout.text).toMatch(
      /CapEff:\s0+\nCapBnd:\s0+\nNoNewPrivs:\s1\nSeccomp:\s2\nlo\n/,
    );
    expect(report.stdout.text.match(/Read-only file system/g)).toHaveLength(3);
    expect(report.stdout.text).toContain("/etc/passwd: No such file");
  });
});

describe("containers of a dead worker", () => {
  test("are removed by the next one with its directory, and those of others are not", async (context) => {
    const { backend, engine, options } = await open(context);
    await using sandbox = await backend.acquire(request(), never);
    const running = await sandbox.start({ argv: ["/bin/sleep", "600"] });
    const [[ownId, own] = ["", ""]] = await engine.labelled(workerLabel, never);
    expect(own).toBe(backend.scratchDir);
    const Image = await openImage(engine, await systemDirectories(), never);
    const dead = join(options.workBase, `worker-${"0".repeat(24)}`);
    const elsewhere = join(options.workBase, "other", `worker-${"0".repeat(24)}`);
    const create = (worker: string) =>
      engine.create({ Image, Cmd: ["/none"], Labels: { [workerLabel]: worker } }, never);
    const [deadId, otherId] = [await create(dead), await create(elsewhere)];
    onTestFinished(() => engine.remove(otherId, never));
    await (await openDocker(options))[Symbol.asyncDispose]();
    const left = [...(await engine.labelled(workerLabel, never)).keys()];
    expect(left.sort()).toEqual([ownId, otherId].sort());
    expect(left).not.toContain(deadId);
    await running.stop(0);
  });
});
