/**
 * Installs npm packages with npm, run by the Node program of tools.
 */
import { type FileHandle, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { below } from "../../support/files/below.ts";
import type { EnvironmentPlan } from "../environments.ts";
import { nodeInstaller } from "./installers.ts";
import { cacheInside, withCache } from "./cache.ts";
import type { BuildParts } from "./python.ts";
import { type Installed, buildPaths, runStep } from "./run.ts";

/** Folder of an environment. */
export const nodeFolder = "node_modules";

/** Puts the files of the project where npm installs, and runs the command. */
const inProject = [
  "/bin/sh",
  "-c",
  `cp ${buildPaths.input}/*.json ${buildPaths.output}/ && exec "$@"`,
  "npm",
];

/**
 * Installs the plan. Calls `take` with the directory that has {@link nodeFolder}. Throws
 * EnvironmentError, SandboxError; rejects with the signal's reason.
 */
export async function installNode<Result>(
  parts: BuildParts,
  plan: EnvironmentPlan,
  take: (output: FileHandle, installed: Installed) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const { executable: node, mounts } = plan.interpreter;
  const program = await nodeInstaller(node, parts.installers);
  const access = await parts.registry.accessOf("npm");
  // Where there is no file, npm has no settings; it refuses one file for two of its configurations.
  const npmrc = join(buildPaths.input, "npmrc");
  const options = [
    ...["--prefix", buildPaths.output],
    ...["--userconfig", npmrc, "--globalconfig", "/dev/null", "--omit", "dev"],
    ...["--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--no-color"],
    ...["--logs-max", "0", "--foreground-scripts"],
    `--ignore-scripts=${!plan.runsScripts}`,
    // Also what packages depend on comes from registries. npm knows these since 11.14, and
    // ignores them before. No manifest and no lockfile relies on them: none names another source.
    ...["git", "remote", "file", "directory"].map((source) => `--allow-${source}=none`),
  ];
  const command = plan.kind === "npm-lock" ? ["ci"] : ["install", "--no-package-lock"];
  const step = {
    title: "npm",
    environment: new Map([
      ...access.environment,
      ["PATH", `${dirname(node)}:/usr/local/bin:/usr/bin:/bin`],
    ]),
    shares: [...program.shares, ...access.shares],
    mounts,
    files: new Map([...plan.files, ...access.files, [aloneFile, npmAlone]]),
    redaction: access.redaction,
  };
  return withCache(
    plan.runsScripts ? undefined : parts.cache,
    program.name,
    (cache) => {
      const cachePath = cache === undefined ? join(buildPaths.temporary, "npm") : cacheInside;
      const npm = [
        ...(cache === undefined ? [] : ["--require", join(buildPaths.input, aloneFile)]),
        ...program.argv,
      ];
      const argv = [...inProject, node, ...npm, ...command, ...options, "--cache", cachePath];
      return runStep(
        parts.host,
        { ...step, argv, cache },
        async (output, over) => {
          // npm makes none where there is nothing to install.
          await mkdir(below(output, nodeFolder)).catch(() => undefined);
          return take(output, { installer: program.name, names: plan.names, signal: over });
        },
        signal,
      );
    },
    signal,
  );
}

const aloneFile = "alone.cjs";
/**
 * npm that is loaded after it can start no program. Versions without `--allow-git` clone packages
 * that others require from git, which runs code of these packages also without install scripts.
 */
const npmAlone = `
const programs = require("node:child_process");
for (const name of ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"])
  programs[name] = () => {
    throw new Error("a build with a cache runs no other program");
  };
`;
