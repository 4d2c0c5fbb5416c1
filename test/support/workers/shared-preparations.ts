/**
 * The preparations that the workers of one test process share: its host and its interpreters stay
 * the same. Tests of the preparations themselves, and all programs, prepare anew.
 */
import { chmod, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import { preparePython } from "../../../worker/runners/python/host.ts";
import { type Tried, identify, tryHost } from "../../../worker/sandbox/bubblewrap/probe/probe.ts";
import { type Trial, tryGroups } from "../../../worker/sandbox/cgroup/trial.ts";
import type { Preparations } from "../../../worker/wiring/host.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of the whole run, which sandboxes can reach; compiled tool runners are in it. */
    readonly preparedDir: string;
  }
}

const versions = new Map<string, string>();
const groups = new Map<string, Trial>();
const tried = new Map<string, Tried>();
const networks = new Set<string>();
const pythons = new Map<string, Awaited<ReturnType<typeof preparePython>>>();

/** Keeps results only: a failure is each worker's own. */
export const sharedPreparations: Preparations = {
  async identify(host, signal) {
    const key = JSON.stringify([host.bwrapBin, host.uid]);
    const version = versions.get(key) ?? (await identify(host, signal));
    versions.set(key, version);
    return version;
  },
  async tryGroups(makings, name) {
    const key = JSON.stringify([makings.dialect.version, makings.parents]);
    const trial = groups.get(key) ?? (await tryGroups(makings, name));
    if (trial.refusals.length === 0) groups.set(key, trial);
    return trial;
  },
  async tryHost(host, base) {
    const { workDir: _, ...features } = base;
    const key = JSON.stringify([host.bwrapBin, host.uid, features]);
    const known = tried.get(key);
    if (known !== undefined) return known;
    const result = await tryHost(host, base);
    if (!("refusal" in result)) tried.set(key, result);
    return result;
  },
  async preparePython({ pythonBin, runnerDir }) {
    const key = JSON.stringify([pythonBin, runnerDir]);
    const known = pythons.get(key);
    if (known !== undefined) return known;
    const scratchDir = await mkdtemp(join(inject("preparedDir"), "python-"));
    await chmod(scratchDir, 0o755);
    const result = await preparePython({ pythonBin, runnerDir, scratchDir });
    pythons.set(key, result);
    return result;
  },
  async tryNetwork({ bwrapBin, pythonBin, uid }, trial) {
    const key = JSON.stringify([bwrapBin, pythonBin, uid]);
    if (networks.has(key)) return;
    await trial();
    networks.add(key);
  },
};
