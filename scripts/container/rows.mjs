/**
 * The ways to run a container that matter, and what has to come of each. docs/containers.md explains them.
 */
import { join } from "node:path";

/** The rows for an engine. `refusedWith` is what the worker has to say when it refuses to start. */
export function rows(engineName, root) {
  const seccomp = ["--security-opt", `seccomp=${join(root, "deploy", "seccomp.json")}`];
  // Docker's own profile refuses user namespaces to ordinary users; podman's does not.
  const ownSeccomp = engineName === "docker" ? seccomp : [];
  const unmasked = [
    "--security-opt",
    engineName === "docker" ? "systempaths=unconfined" : "unmask=ALL",
  ];
  const hardened = ["--cap-drop=ALL", "--security-opt", "no-new-privileges", "--read-only"];
  const runs = {};
  return [
    { flags: ["--cap-drop=ALL", ...ownSeccomp], expected: runs },
    { flags: [...hardened, ...ownSeccomp, ...unmasked], expected: runs },
    { flags: [...hardened, ...seccomp, ...unmasked], expected: runs },
    { flags: [...hardened, ...seccomp], expected: runs },
    {
      flags: ["--user", "0", "--cap-add=SYS_ADMIN", ...ownSeccomp],
      expected: { refusedWith: /guard is partly/ },
    },
    {
      flags: ["--user", "0", "--cap-add=SYS_PTRACE", ...ownSeccomp, ...unmasked],
      expected: runs,
    },
    {
      flags: ["--user", "0", "--cap-drop=ALL", ...ownSeccomp],
      expected: { refusedWith: /this root may not run programs as user/ },
    },
    {
      flags: ["--cap-add=SYS_ADMIN", ...ownSeccomp],
      expected: { refusedWith: /[Cc]apabilit/ },
    },
  ];
}
