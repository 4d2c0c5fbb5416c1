/**
 * The routes of calls into the queues of a group.
 */
import { describe, expect, test, vi } from "vitest";
import { BrokerError, type ToolPlacement } from "../../../worker/broker/broker.ts";
import { Routes, type RoutesParts, routeCheckMs } from "../../../worker/broker/routes.ts";
import { patience } from "../../support/patience.ts";

import { HandClock } from "./hand-clock.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const never = new AbortController().signal;
const refusal = (tool: string): BrokerError =>
  new BrokerError(`${tool} is refused`, { transient: true });

/**
 * Routes on a broker that does what it is asked to, but for tools that it refuses.
 *
 * @param restores whether routes have to be restored, since the broker does not report their loss
 */
function setUp(
  {
    queueOf = () => "default",
    foreignTools = () => [],
    ...changes
  }: Partial<RoutesParts & ToolPlacement> = {},
  restores = true,
) {
  const [clock, log, connection] = [new HandClock(), keptLog(), new AbortController()];
  const commands: string[] = [];
  const refused = new Set<string>();
  const command = (name: string) => (tool: string, queue: string) => {
    commands.push(`${name} ${tool} ${queue}`);
    return refused.has(tool) ? Promise.reject(refusal(tool)) : Promise.resolve();
  };
  const routes = new Routes({
    queues: ["default", "heavy"],
    placement: { queueOf, foreignTools },
    routesElsewhere: true,
    route: command("route"),
    unroute: command("unroute"),
    ...(restores && { restore: () => Promise.resolve(void commands.push("restore")) }),
    ended: connection.signal,
    clock,
    log,
    ...changes,
  });
  /** Has the next check begin; what it asked the broker for. */
  const check = async (isOver: () => boolean): Promise<readonly string[]> => {
    commands.splice(0);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(routeCheckMs);
    await vi.waitFor(() => expect(isOver()).toBe(true), patience);
    return [...commands];
  };
  return { routes, clock, log, commands, refused, connection, check };
}

describe("a tool", () => {
  test("is routed into its queue, and then into no other", async () => {
    const { routes, commands } = setUp({ queueOf: () => "heavy" });
    await routes.add("echo", never);
    expect(commands).toEqual(["route echo heavy", "unroute echo default"]);
  });

  test("is unrouted from the others once, unless its queue changes", async () => {
    let queue = "default";
    const { routes, commands } = setUp({ queueOf: () => queue }, false);
    await routes.add("echo", never);
    commands.splice(0);
    await routes.add("echo", never);
    queue = "heavy";
    await routes.add("echo", never);
    const moved = ["route echo heavy", "unroute echo default"];
    expect(commands).toEqual(["route echo default", ...moved]);
  });

  test("that the broker refuses is the caller's failure, is missed, and is routed later", async () => {
    const { routes, refused, check } = setUp({}, false);
    refused.add("echo");
    await expect(routes.add("echo", never)).rejects.toThrow("echo is refused");
    expect(routes.areMissing).toBe(true);
    refused.clear();
    const commands = await check(() => !routes.areMissing);
    expect(commands).toEqual(["route echo default", "unroute echo heavy"]);
  });

  test("that was left is restored no more, and its route stays", async () => {
    const { routes, commands, check } = setUp();
    await routes.add("kept", never);
    await routes.add("left", never);
    await routes.delete("left", never);
    const done = (): boolean => commands.length === 2;
    expect(await check(done)).toEqual(["restore", "route kept default"]);
    expect(routes.areMissing).toBe(false);
  });
});

describe("a tool that other workers serve", () => {
  const foreign = { queueOf: () => "theirs", foreignTools: () => ["moved"] };
  const fromBoth = [
    ...["route moved theirs", "unroute moved default"],
    ...["route moved theirs", "unroute moved heavy"],
  ];

  test("is taken from every queue when it is left, and into theirs before", async () => {
    const { routes, commands } = setUp(foreign);
    await routes.delete("moved", never);
    expect(commands[0]).toBe("route moved theirs");
    expect(commands.toSorted()).toEqual(fromBoth.toSorted());
  });

  test("is taken from a queue that this worker begins to consume", async () => {
    const { routes, commands } = setUp(foreign);
    await routes.routeAll("heavy", never);
    expect(commands).toEqual(fromBoth.slice(2));
  });

  test("is only taken out where no broker routes into a queue of others", async () => {
    const { routes, commands } = setUp({ ...foreign, routesElsewhere: false });
    await routes.routeAll("heavy", never);
    expect(commands).toEqual(["unroute moved heavy"]);
  });

  test("keeps its route as long as theirs is not there, and is looked at again", async () => {
    const { routes, commands, refused, log, check } = setUp(foreign);
    refused.add("moved");
    await routes.routeAll("heavy", never);
    expect(commands).toEqual(["route moved theirs"]);
    expect(log.events).toEqual(["tool.route_refused"]);
    refused.clear();
    const done = (): boolean => commands.includes("unroute moved heavy");
    expect(await check(done)).toEqual(["restore", ...fromBoth]);
  });

  test("that is not in the manifest any more keeps its route: others of the group may serve it", async () => {
    const { routes, commands } = setUp({ queueOf: () => undefined });
    await routes.delete("gone", never);
    expect(commands).toEqual([]);
  });

  test("loses the route that was under way when it was left", async () => {
    const tools: string[] = [];
    const { routes, commands } = setUp({
      queueOf: () => (tools.length === 0 ? "default" : "theirs"),
      foreignTools: () => tools,
    });
    const adding = routes.add("moved", never);
    tools.push("moved");
    await routes.delete("moved", never);
    await adding;
    expect(commands.at(-1)).toBe("unroute moved heavy");
  });
});

describe("all tools of a queue", () => {
  test("are routed, and no others; those that the broker refuses are logged", async () => {
    const { routes, commands, refused, log } = setUp({
      queueOf: (tool) => (tool === "big" ? "heavy" : "default"),
    });
    routes.want(["fine", "bad", "big"]);
    refused.add("bad");
    await routes.routeAll("default", never);
    const expected = ["route fine default", "route bad default", "unroute fine heavy"];
    expect(commands).toEqual(expected);
    expect(log.factsOf("tool.route_refused")).toMatchObject([{ tool: "bad" }]);
    expect(routes.areMissing).toBe(false);
  });

  test("are unrouted from a queue that is not theirs any more", async () => {
    const { routes, commands } = setUp({
      queueOf: (tool) => (tool === "big" ? "heavy" : "default"),
    });
    routes.want(["small", "big", "new"]);
    await routes.routeAll("heavy", never);
    commands.splice(0);
    await routes.unrouteOthers("default", never);
    expect(commands).toEqual(["unroute big default"]);
  });

  test("fail when the broker refuses each of them", async () => {
    const { routes, refused } = setUp();
    routes.want(["one", "two"]);
    for (const tool of ["one", "two"]) refused.add(tool);
    await expect(routes.routeAll("default", never)).rejects.toThrow("one is refused");
    await expect(routes.routeAll("heavy", never)).resolves.toBeUndefined();
  });

  test("are not routed more than 32 at a time", async () => {
    let [now, most] = [0, 0];
    const route = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
    };
    const { routes } = setUp({ route });
    routes.want(Array.from({ length: 100 }, (_, n) => `tool-${n}`));
    await routes.routeAll("default", never);
    expect([most, now]).toEqual([32, 0]);
  });
});

describe("the check", () => {
  test("restores every route, and logs when one cannot be restored and when it is", async () => {
    const { routes, refused, log, check } = setUp();
    await routes.add("echo", never);
    refused.add("echo");
    await check(() => log.events.includes("routes.restore_failed"));
    expect(routes.areMissing).toBe(true);
    refused.clear();
    await check(() => !routes.areMissing);
    expect(log.events.at(-1)).toBe("routes.restored");
  });

  test("tries routes that failed alone where a broker keeps the others", async () => {
    const { routes, commands, refused, check } = setUp({}, false);
    refused.add("bad");
    routes.want(["fine", "bad"]);
    await routes.routeAll("default", never);
    expect(await check(() => commands.length > 0)).toEqual(["route bad default"]);
  });

  test("ends with the connection", async () => {
    const { routes, clock, connection } = setUp();
    await routes.add("echo", never);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    connection.abort(refusal("connection"));
    await vi.waitFor(() => expect(clock.sleeping).toBe(0), patience);
  });
});
