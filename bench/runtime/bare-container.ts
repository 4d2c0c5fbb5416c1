/**
 * A container like that of an execution, made, run and removed by the Engine API alone.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { workDirInside } from "../../worker/sandbox/sandbox.ts";
import { workDirNames } from "../../worker/sandbox/work/work-dir.ts";
import type { Engine, Inspected } from "./engine.ts";

/** Everybody can pass it, also where TMPDIR is private. */
const place = "/var/tmp";

/** The caller disposes it. */
export interface BareContainer extends AsyncDisposable {
  /** Milliseconds of one container, from the request that creates it to the last answer. */
  run(isRemoved: boolean): Promise<number>;
}

/** @param inspected the execution's container; the new ones differ in code and work directory */
export async function openBareContainer(
  engine: Engine,
  { Config, HostConfig }: Inspected,
  code: string,
): Promise<BareContainer> {
  const workDir = await mkdtemp(join(place, "str-bench-"));
  const container = {
    ...Config,
    HostConfig: {
      ...HostConfig,
      Mounts: HostConfig.Mounts.map((mount) =>
        mount.Target === workDirInside ? { ...mount, Source: workDir } : mount,
      ),
    },
  };
  const result = join(workDir, workDirNames.result);
  const call = JSON.stringify({
    ...{ program: { language: "python" }, args: { code } },
    result_file: join(workDirInside, workDirNames.result),
    output_dir: join(workDirInside, workDirNames.output),
  });
  await mkdir(join(workDir, workDirNames.output));
  for (const path of [workDir, join(workDir, workDirNames.output)]) await chmod(path, 0o777);
  return {
    async run(isRemoved) {
      const args = join(workDir, workDirNames.args);
      await rm(result, { force: true });
      await writeFile(args, call);
      await chmod(args, 0o666);
      const startMs = performance.now();
      const id = await engine.create(container);
      await engine.start(id);
      const exitCode = await engine.wait(id);
      const waitedMs = performance.now() - startMs;
      await engine.remove(id);
      const removedMs = performance.now() - startMs;
      const answer = await readFile(result, "utf8").catch(String);
      if (exitCode !== 0 || !answer.includes('"value"'))
        throw new Error(`the container ended with ${exitCode}: ${answer}`);
      return isRemoved ? removedMs : waitedMs;
    },
    [Symbol.asyncDispose]: () => rm(workDir, { recursive: true, force: true }),
  };
}
