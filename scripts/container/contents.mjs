/**
 * What must not be in the image: what only builds and tests need.
 */

const lookTimeoutMs = 3 * 60_000;

/** Prints what of it is there, a line each. */
const look = `
for program in cc gcc g++ make git tsc vitest eslint; do command -v "$program"; done
for part in .git test bench scripts worker harness Dockerfile; do ls -d "/opt/str/$part"; done 2> /dev/null
find /opt/str -path /opt/str/node_modules -prune -o \\( -name '*.test.ts' -o -name .git -o -name __pycache__ \\) -print
find /opt/str -user 1000
true`;

/**
 * Paths that should not be in the image, or that the worker's user could change although it only
 * runs them.
 */
export function strayFiles(engine, image) {
  const output = engine.mustRun(
    ["run", "--rm", "--network=none", ...engine.runFlags, "--entrypoint", "sh", image, "-c", look],
    lookTimeoutMs,
  );
  return output.split("\n").filter((line) => line !== "");
}
