/**
 * Programs that keep every processor busy, and give way to all others.
 */
import { spawn } from "node:child_process";
import { constants, cpus, setPriority } from "node:os";

/** Reads memory and computes, until its parent lets go of it or ends. */
const program = `
  const { createHash } = require("node:crypto");
  const bytes = Buffer.alloc(1024 * 1024);
  process.on("disconnect", () => process.exit());
  const work = () => {
    createHash("sha1").update(bytes).digest();
    setImmediate(work);
  };
  work();
`;

/** Starts one for each processor. The caller ends them. */
export function fillProcessors(): Disposable {
  const children = cpus().map(() => {
    const child = spawn(process.execPath, ["-e", program], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    return child;
  });
  return {
    [Symbol.dispose]: () => {
      for (const child of children) child.kill("SIGKILL");
    },
  };
}
