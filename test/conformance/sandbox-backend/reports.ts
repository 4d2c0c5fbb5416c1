/**
 * What is told of sandboxes and of commands.
 */
import { describe, expect, test } from "vitest";
import { limitNames } from "../../../worker/protocol/resource-limits.ts";
import { builtInProfiles, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { never, request } from "../../integration/sandbox/sandbox-host.ts";
import { type OpenBackend, type SandboxBackendTraits, run } from "./running.ts";

export function describeReports(open: OpenBackend, { isolates }: SandboxBackendTraits): void {
  const mechanisms: readonly unknown[] = ["kernel", "guard", "none"];

  describe("what is told", () => {
    test("of every profile, before there is a sandbox: technology, who keeps what, what is not kept", async (context) => {
      const backend = await open(context);
      for (const profile of builtInProfiles.values()) {
        const { technology, enforcement, unenforced, clamped } = backend.facts(profile);
        expect(technology).not.toBe("");
        expect(Object.keys(enforcement).sort()).toEqual([...limitNames].sort());
        expect(unenforced.includes("isolation")).toBe(!isolates);
        for (const limit of clamped) expect(limitNames).toContain(limit);
      }
    });

    test("of a sandbox: who keeps each limit, and what is not kept", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      expect(Object.keys(sandbox.enforcement).sort()).toEqual([...limitNames].sort());
      for (const mechanism of Object.values(sandbox.enforcement))
        expect(mechanisms).toContain(mechanism);
      const { unenforced } = backend.facts(restrictiveProfile);
      for (const gap of sandbox.unenforced) expect(unenforced).toContain(gap);
      expect(sandbox.unenforced.includes("isolation")).toBe(!isolates);
    });

    test("of a command: how long it ran, and nothing that nobody measured", async (context) => {
      const backend = await open(context);
      const startMs = performance.now();
      const { usage, exceeded } = await run(backend, "sleep 0.2");
      const aroundMs = performance.now() - startMs;
      expect(exceeded).toBeUndefined();
      const { wallMs, ...measured } = usage;
      expect(wallMs).toBeGreaterThanOrEqual(200);
      expect(wallMs).toBeLessThanOrEqual(aroundMs);
      for (const value of Object.values(measured))
        if (value !== undefined) expect(value).toBeGreaterThanOrEqual(0);
    });
  });
}
