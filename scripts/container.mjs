/**
 * Builds the image of the Dockerfile, looks into it, runs the demo and the doctor in it, once for
 * each way to run a container that matters, a worker as a service, and images built on it.
 *
 *     node scripts/container.mjs [--base IMAGE] [--keep] [--without-attacks]
 *
 * With Docker or podman, whichever answers. Where no registry can be reached, a base is made by
 * debootstrap (as root). Prints a table and exits 0 when every row came out as expected, 1
 * when one did not, and 69 (EX_UNAVAILABLE of sysexits(3)) with the reason when no container can be
 * made here.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findBase, removeMadeBase } from "./container/base.mjs";
import { builtOnProblems } from "./container/built-on.mjs";
import { Unavailable, findEngine } from "./container/engine.mjs";
import { strayFiles } from "./container/contents.mjs";
import { bestFlags, rows } from "./container/rows.mjs";
import { serviceProblems } from "./container/service.mjs";

const image = "str-worker-check";
const exitUnavailable = 69;
const buildTimeoutMs = 15 * 60_000;
const rowTimeoutMs = 3 * 60_000;
const attacksTimeoutMs = 20 * 60_000;
/** What the doctor asks of each container. */
const minimum = "SANDBOX_MINIMUM=user-namespaces,egress";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

try {
  process.exitCode = check();
} catch (error) {
  if (!(error instanceof Unavailable)) throw error;
  process.stderr.write(`container: ${error.message}\n`);
  process.exitCode = exitUnavailable;
}

function check() {
  const options = {
    base: { type: "string" },
    keep: { type: "boolean", default: false },
    "without-attacks": { type: "boolean", default: false },
  };
  const { base: asked, keep, "without-attacks": isShort } = parseArgs({ options }).values;
  const engine = findEngine();
  const scratch = mkdtempSync(join(tmpdir(), "str-container-"));
  try {
    const base = asked ?? findBase(engine, root, scratch);
    say(`building with ${engine.name} on ${base}`);
    engine.mustRun(
      ["build", ...engine.buildFlags, "--build-arg", `BASE=${base}`, "--tag", image, root],
      buildTimeoutMs,
    );
    const best = bestFlags(engine.name, root);
    const failures = [
      hasNone("nothing in the image that only builds need", strayFiles(engine, image)),
      ...rows(engine.name, root).map((row) => comesOut(engine, row)),
      hasNone(
        "a worker leaves no process behind, and drains when it is stopped",
        serviceProblems(engine, image, best),
      ),
      hasNone(
        "tools of images built on this one have the packages that were added",
        builtOnProblems(engine, image, root, best),
      ),
      isShort || hasNone("every attack is held that should be", attackProblems(engine, best)),
    ].filter((isRight) => !isRight).length;
    say(failures === 0 ? "every row came out as expected" : `${failures} rows did not`);
    return failures === 0 ? 0 : 1;
  } finally {
    if (!keep) {
      engine.run(["rmi", "--force", image], rowTimeoutMs);
      removeMadeBase(engine);
    }
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Runs the demo in a container of the row's flags, and where it runs also the doctor, which has to
 * find that lists hold. Tells what came of it.
 */
function comesOut(engine, { flags, expected }) {
  const runs = expected.refusedWith === undefined;
  const run = (command) =>
    engine.run(
      ["run", "--rm", "--network=none", ...engine.runFlags, ...flags, ...command],
      rowTimeoutMs,
    );
  const demo = run(["--entrypoint", "harness", image, "demo"]);
  const { status, output } =
    runs && demo.status === 0 ? run(["--env", minimum, image, "doctor"]) : demo;
  const isRight = runs ? status === 0 : status !== 0 && expected.refusedWith.test(output);
  const what = runs ? "runs, and lists of hosts hold" : "is refused";
  say(`${isRight ? "ok  " : "FAIL"} ${what}: ${flags.join(" ")}`);
  if (!isRight) process.stdout.write(`${output.trim()}\n`);
  return isRight;
}

/** What the doctor says of a container with these flags, when it is not content. */
function attackProblems(engine, flags) {
  const { status, output } = engine.run(
    [
      ...["run", "--rm", "--network=none", ...engine.runFlags, ...flags, image],
      ...["doctor", "--attack", "--profile", "restrictive", "--start", "all"],
    ],
    attacksTimeoutMs,
  );
  return status === 0 ? [] : [output.trim()];
}

/** Tells of a row that is right when there is no problem. */
function hasNone(what, problems) {
  say(`${problems.length === 0 ? "ok  " : "FAIL"} ${what}`);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  return problems.length === 0;
}

function say(text) {
  process.stdout.write(`container: ${text}\n`);
}
