/**
 * Profiles that nobody tried at the start: whatever an operator combines is a sandbox where the
 * built-in ones are.
 */
import { type TestContext, describe, expect, test } from "vitest";
import { type Profile, builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { never, request, runScript, sharedBackends } from "./sandbox-host.ts";

/**
 * What decides the mounts and namespaces of a sandbox; the other members are numbers and a name.
 */
type Shape = Pick<Profile, "network" | "readsEtc" | "hasVar" | "terminals">;

const shapes: readonly Shape[] = (["none", "host"] as const).flatMap((network) =>
  [false, true].flatMap((readsEtc) =>
    [false, true].flatMap((hasVar) =>
      [false, true].map((terminals) => ({ network, readsEtc, hasVar, terminals })),
    ),
  ),
);

const open = sharedBackends();

describe("a profile", () => {
  test("is decided by no other members than these", () => {
    const { name, backend, limits, autoStart, systemCalls, ...shape } =
      builtInProfiles.get("standard")!;
    expect([name, backend, typeof limits, autoStart, systemCalls]).toEqual([
      ...["standard", "bubblewrap", "object", "template", "usual"],
    ]);
    expect(Object.keys(shape).sort()).toEqual(Object.keys(shapes[0]!).sort());
  });

  async function isMade(shape: Shape, context: TestContext): Promise<void> {
    const backend = await open(context);
    const profile = { ...builtInProfiles.get("restrictive")!, name: "own", ...shape };
    await using sandbox = await backend.acquire(request({ profile }), never);
    const said = await runScript(
      sandbox,
      "[ -e /etc/passwd ]; echo $?; [ -w /var ]; echo $?; [ -e /dev/ptmx ]; echo $?; grep -c : /proc/net/dev",
    );
    expect(said.stderr.text).toBe("");
    const [etc, privateVar, terminals, interfaces] = said.stdout.text.trim().split("\n");
    const isThere = (status: string | undefined): boolean => status === "0";
    expect([etc, privateVar, terminals].map(isThere)).toEqual([
      ...[shape.readsEtc, shape.hasVar, shape.terminals],
    ]);
    if (shape.network === "none") expect(interfaces).toBe("1");
  }

  const title = "with $network, /etc $readsEtc, /var $hasVar and terminals $terminals";
  // No built-in profile is like one of these.
  const usual = shapes.filter(({ readsEtc, hasVar }) => readsEtc && !hasVar);
  test.for(usual)(title, isMade);
  test.for(shapes.filter((shape) => !usual.includes(shape)))(title, { tags: "full" }, isMade);
});
