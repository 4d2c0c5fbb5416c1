/**
 * Profiles that nobody tried at the start: whatever an operator combines is a sandbox where the built-in ones are.
 */
import { describe, expect, test } from "vitest";
import { type Profile, builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { never, openBackend, request, runScript } from "./sandbox-host.ts";

/** What decides the mounts and namespaces of a sandbox; the other members are numbers and a name. */
type Shape = Pick<Profile, "network" | "readsEtc" | "hasVar">;

const shapes: readonly Shape[] = (["none", "host"] as const).flatMap((network) =>
  [false, true].flatMap((readsEtc) =>
    [false, true].map((hasVar) => ({ network, readsEtc, hasVar })),
  ),
);

describe("a profile", () => {
  test("is decided by no other members than these", () => {
    const { name, backend, limits, ...shape } = builtInProfiles.get("standard")!;
    expect({ name, backend, limits: typeof limits }).toMatchObject({ name: "standard" });
    expect(Object.keys(shape).sort()).toEqual(Object.keys(shapes[0]!).sort());
  });

  test.for(shapes)("with $network, /etc $readsEtc and /var $hasVar", async (shape, context) => {
    await using backend = await openBackend(context);
    const profile = { ...builtInProfiles.get("restrictive")!, name: "own", ...shape };
    await using sandbox = await backend.acquire(request({ profile }), never);
    const said = await runScript(
      sandbox,
      "[ -e /etc/passwd ]; echo $?; [ -w /var ]; echo $?; grep -c : /proc/net/dev",
    );
    expect(said.stderr.text).toBe("");
    const [etc, privateVar, interfaces] = said.stdout.text.trim().split("\n");
    expect([etc, privateVar]).toEqual([shape.readsEtc ? "0" : "1", shape.hasVar ? "0" : "1"]);
    if (shape.network === "none") expect(interfaces).toBe("1");
  });
});
