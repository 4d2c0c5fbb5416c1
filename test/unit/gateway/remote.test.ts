/**
 * What a worker knows of the tools of others.
 */
import { expect, test } from "vitest";
import {
  RemoteDirectory,
  maxDirectoryBytes,
  maxRemoteTools,
} from "../../../worker/gateway/remote.ts";
import type { Announcement } from "../../../worker/protocol/discovery/announcement.ts";

const nothing: Announcement = {
  description: undefined,
  instructions: undefined,
  parameters: undefined,
  result: undefined,
  artifactParameters: new Map(),
  allowedCallers: undefined,
};

function directoryOf(...names: string[]): RemoteDirectory {
  const directory = new RemoteDirectory();
  directory.follow(names);
  return directory;
}

test("a listed tool is there before anything is known of it, and no other one is", () => {
  const directory = directoryOf("weather");
  directory.announced("other", { ...nothing, description: "Unasked" }, 10);
  expect(directory.entries).toEqual([{ id: "weather" }]);
});

test("the last announcement describes a tool until it is removed or no longer listed", () => {
  const directory = directoryOf("weather", "adds");
  directory.announced("weather", { ...nothing, description: "Old" }, 10);
  directory.announced("weather", { ...nothing, description: "New", instructions: "Ask" }, 10);
  expect(directory.entries[0]).toMatchObject({ id: "weather", description: "New", notes: "Ask" });
  directory.removed("weather");
  expect(directory.entries[0]).toEqual({ id: "weather" });
  directory.announced("weather", { ...nothing, description: "Again" }, 10);
  directory.follow(["adds"]);
  directory.follow(["adds", "weather"]);
  expect(directory.entries).toEqual([{ id: "adds" }, { id: "weather" }]);
});

test("who may call a tool is known beyond its removal by one of its workers", () => {
  const directory = directoryOf("weather");
  directory.announced("weather", { ...nothing, allowedCallers: new Set(["direct"]) }, 10);
  directory.removed("weather");
  expect(directory.entries).toEqual([]);
});

test("an announcement that is repeated changes nothing", () => {
  const directory = directoryOf("weather");
  directory.announced("weather", { ...nothing, description: "Same" }, 10);
  const { entries } = directory;
  directory.announced("weather", { ...nothing, description: "Same" }, 10);
  expect(directory.entries).toBe(entries);
});

test("a tool whose worker allows no programs is not there; one that does not say is", () => {
  const directory = directoryOf("direct", "both", "silent");
  directory.announced("direct", { ...nothing, allowedCallers: new Set(["direct"]) }, 10);
  const both = new Set(["direct", "programmatic"]);
  directory.announced("both", { ...nothing, allowedCallers: both }, 10);
  directory.announced("silent", nothing, 10);
  expect(directory.entries.map(({ id }) => id)).toEqual(["both", "silent"]);
});

test("tools beyond the bound are not there", () => {
  const names = Array.from({ length: maxRemoteTools + 1 }, (_, n) => `tool${n}`);
  expect(directoryOf(...names).entries).toHaveLength(maxRemoteTools);
});

test("announcements beyond the bound leave who may call, and nothing else", () => {
  const directory = directoryOf("large", "next", "refused");
  directory.announced("large", { ...nothing, description: "Large" }, maxDirectoryBytes);
  const refusal = { ...nothing, allowedCallers: new Set(["direct"]) };
  directory.announced("next", { ...nothing, description: "Next" }, 1);
  directory.announced("refused", refusal, 1);
  expect(directory.entries).toMatchObject([{ id: "large", description: "Large" }, { id: "next" }]);
  expect(directory.entries[1]?.description).toBeUndefined();
  directory.removed("large");
  directory.announced("next", { ...nothing, description: "Next" }, 1);
  expect(directory.entries[1]).toMatchObject({ id: "next", description: "Next" });
});
