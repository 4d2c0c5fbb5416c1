/**
 * The exported contract of backends, held by those that need a daemon or a program of their own,
 * and by WebAssembly.
 *
 * @module-tag full
 */
import { describe, test } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { backendContract } from "../../../worker/runtime/testing.ts";
import { openers } from "../../support/runtime/opened-backends.ts";
import { shared } from "../../support/shared.ts";

describe.each([
  { kind: "docker", language: "python" },
  { kind: "containerd", language: "python" },
  { kind: "gvisor", language: "python" },
  { kind: "wasm", language: "javascript" },
] as const)("the backend $kind, in $language", ({ kind, language }) => {
  const open = shared<RuntimeBackend>(openers[kind]);

  let opened: RuntimeBackend;
  // One for all checks: each opens and closes a view of it.
  const newBackend = (): RuntimeBackend => ({
    ...opened,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
  for (const { name, run } of backendContract({ newBackend, expectedKind: kind, language }))
    test(name, async (context) => {
      opened = await open(context);
      await run();
    });
});
