/**
 * Images built on ours, with packages for tools: those of examples/image. A worker of each answers
 * calls of tools that import the packages, without a network.
 */
import { join } from "node:path";
import { commandTimeoutMs, containerName, withWorker } from "./worker.mjs";

const buildTimeoutMs = 5 * 60_000;

/** Calls of the tools in examples/image, with what their packages make of the arguments. */
const calls = [
  { tool: "slug", args: { text: "Größe & Maß" }, answer: /"grosse-mass"/ },
  { tool: "duration", args: { text: "2 days" }, answer: /\b172800000\b/ },
];

/**
 * Builds such images as docs/containers.md has it for this engine, and calls their tools. Returns
 * what is wrong, a line each.
 *
 * @param flags of a worker's container
 */
export function builtOnProblems(engine, base, root, flags) {
  const image = `${base}-built-on`;
  const example = join(root, "examples", "image");
  const build = (dockerfile) => {
    const file = ["--file", join(example, dockerfile), "--build-arg", `BASE=${base}`];
    engine.mustRun(
      ["build", ...engine.buildFlags, ...file, "--tag", image, example],
      buildTimeoutMs,
    );
  };
  const ways = [
    ["by pip and npm", () => build("Dockerfile")],
    engine.name === "podman"
      ? ["by str-worker --prepare", () => build("prepared.Dockerfile")]
      : [
          "committed after str-worker --prepare",
          () => commitPrepared(engine, base, example, image),
        ],
  ];
  return ways.flatMap(([way, make]) => {
    try {
      make();
      return wrongAnswers(engine, image, flags).map((problem) => `${way}: ${problem}`);
    } finally {
      engine.run(["rmi", "--force", image], commandTimeoutMs);
    }
  });
}

/** For builders that let no build make sandboxes, as Docker's. */
function commitPrepared(engine, base, example, image) {
  const name = `${containerName(image)}-prepared`;
  const seccomp = `seccomp=${join(example, "..", "..", "deploy", "seccomp.json")}`;
  const flags = ["--cap-drop=ALL", "--security-opt", seccomp, "--network=host"];
  const command = (...args) => engine.mustRun(args, buildTimeoutMs);
  try {
    command("create", "--name", name, ...engine.runFlags, ...flags, base, "--prepare");
    command("cp", `${join(example, "tools")}/.`, `${name}:/tools`);
    command("start", "--attach", name);
    command("commit", "--change", "CMD []", name, image);
  } finally {
    engine.run(["rm", "--force", name], commandTimeoutMs);
  }
}

function wrongAnswers(engine, image, flags) {
  return withWorker(engine, image, flags, ({ call }) =>
    calls.flatMap(({ tool, args, answer }) => {
      const printed = call(tool, args);
      return answer.test(printed) ? [] : [`${tool} answered ${printed.trim()}`];
    }),
  );
}
