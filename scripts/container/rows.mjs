/**
 * The ways to run a container that matter, and what has to come of each. docs/containers.md
 * explains them.
 */
import { join } from "node:path";

/** No privilege, and nothing to write to but volumes. */
const hardened = ["--cap-drop=ALL", "--security-opt", "no-new-privileges", "--read-only"];

/** The flags that docs/containers.md calls the best, on an engine. */
export function bestFlags(engineName, root) {
  return [...hardened, ...ownSeccomp(engineName, root), ...unmasked(engineName)];
}

/** The rows for an engine. `refusedWith` is what the worker has to say when it refuses to start. */
export function rows(engineName, root) {
  const seccomp = seccompFlags(root);
  const usual = ownSeccomp(engineName, root);
  const unmask = unmasked(engineName);
  const runs = {};
  return [
    { flags: ["--cap-drop=ALL", ...usual], expected: runs },
    { flags: bestFlags(engineName, root), expected: runs },
    { flags: [...hardened, ...seccomp, ...unmask], expected: runs },
    { flags: [...hardened, ...seccomp], expected: runs },
    {
      flags: ["--user", "0", "--cap-add=SYS_ADMIN", ...usual],
      expected: { refusedWith: /guard is partly/ },
    },
    {
      flags: ["--user", "0", "--cap-add=SYS_PTRACE", ...usual, ...unmask],
      expected: runs,
    },
    {
      flags: ["--user", "0", "--cap-drop=ALL", ...usual],
      expected: { refusedWith: /this root may not run programs as user/ },
    },
    {
      flags: ["--cap-add=SYS_ADMIN", ...usual],
      // Docker gives it to root only.
      expected: engineName === "docker" ? runs : { refusedWith: /[Cc]apabilit/ },
    },
  ];
}

function seccompFlags(root) {
  return ["--security-opt", `seccomp=${join(root, "deploy", "seccomp.json")}`];
}

/** Docker's own profile refuses user namespaces to ordinary users; podman's does not. */
function ownSeccomp(engineName, root) {
  return engineName === "docker" ? seccompFlags(root) : [];
}

function unmasked(engineName) {
  return ["--security-opt", engineName === "docker" ? "systempaths=unconfined" : "unmask=ALL"];
}
