/**
 * Topics: printing and parsing, what is refused, and how patterns match.
 */
import { fc, test } from "../../support/properties/property.ts";
import { describe, expect } from "vitest";
import {
  invokeTopic,
  isPublishableTopic,
  maxNamespaceBytes,
  maxToolNameBytes,
  maxTopicBytes,
  namespaceProblem,
  parseInvokeTopic,
  responseTopic,
  statusTopic,
  toolNameProblem,
  topicMatches,
} from "../../../worker/protocol/topics.ts";
import { timesTheWork } from "../../support/cpu-time.ts";

const level = fc.stringMatching(/^[A-Za-z0-9._-]{1,20}$/).filter((text) => !text.includes(".."));
const namespace = fc
  .tuple(fc.array(level, { minLength: 1, maxLength: 4 }), fc.constantFrom("", "/"))
  .map(([levels, slash]) => levels.join("/") + slash);

describe("topics of the protocol", () => {
  test("are those of the design document", () => {
    expect(invokeTopic("prod", "process_file")).toBe(
      "prod/a2a/v1/sam_remote_tool/invoke/process_file",
    );
    expect(responseTopic("prod", "MyAgent", "abc-123")).toBe(
      "prod/a2a/v1/sam_remote_tool/response/MyAgent/abc-123",
    );
    expect(statusTopic("myorg/dev", "MyAgent", "abc-123")).toBe(
      "myorg/dev/a2a/v1/sam_remote_tool/status/MyAgent/abc-123",
    );
  });

  test("do not tell a namespace with a trailing slash from one without", () => {
    expect(invokeTopic("ed_test/", "echo")).toBe(invokeTopic("ed_test", "echo"));
    expect(parseInvokeTopic("ed_test", invokeTopic("ed_test/", "echo"))).toBe("echo");
  });

  test.prop([namespace, level])("give the tool name back that they were made of", (ns, tool) => {
    expect(namespaceProblem(ns)).toBeUndefined();
    expect(toolNameProblem(tool)).toBeUndefined();
    expect(parseInvokeTopic(ns, invokeTopic(ns, tool))).toBe(tool);
  });

  test("are never too long for a valid namespace and tool name", () => {
    const longest = invokeTopic("n".repeat(maxNamespaceBytes), "t".repeat(maxToolNameBytes));
    expect(longest.length).toBeLessThanOrEqual(maxTopicBytes);
  });

  test("name no tool when they are of another kind or namespace", () => {
    expect(parseInvokeTopic("a", invokeTopic("b", "echo"))).toBeUndefined();
    expect(parseInvokeTopic("a", statusTopic("a", "Agent", "1"))).toBeUndefined();
    expect(parseInvokeTopic("a", invokeTopic("a", ""))).toBeUndefined();
    expect(parseInvokeTopic("a", `${invokeTopic("a", "echo")}/more`)).toBeUndefined();
  });
});

describe("a namespace", () => {
  test.each(["prod", "ed_test/", "myorg/dev", "a.b-c_d/0", "n".repeat(maxNamespaceBytes)])(
    "may be %s",
    (text) => expect(namespaceProblem(text)).toBeUndefined(),
  );

  test.each([
    ["", "is empty"],
    ["/", "is empty"],
    ["/prod", "has an empty level"],
    ["a//b", "has an empty level"],
    ["a//", "has an empty level"],
    ["a/../b", 'contains ".."'],
    ["a b", "has characters other than"],
    ["a/>", "has characters other than"],
    ["a/*", "has characters other than"],
    ["prod\n", "has characters other than"],
    ["né", "has characters other than"],
    ["n".repeat(maxNamespaceBytes + 1), "is longer than"],
  ])("may not be %j: it %s", (text, problem) => {
    expect(namespaceProblem(text)).toContain(problem);
  });
});

describe("a tool name", () => {
  test.each(["echo_tool", "toolset__tool", "a.b-c", "t".repeat(maxToolNameBytes)])(
    "may be %s",
    (text) => expect(toolNameProblem(text)).toBeUndefined(),
  );

  test.each(["", "a/b", "a/", ">", "*", "a b", "a\n", "..", "a..b", "é", "t".repeat(101)])(
    "may not be %j",
    (text) => expect(toolNameProblem(text)).toBeDefined(),
  );
});

describe("a topic from a message", () => {
  test.each(["a", "a/b/c", "ns/response/Agent/21f09531", "é/年", "t".repeat(maxTopicBytes)])(
    "can be published to when it is %s",
    (topic) => expect(isPublishableTopic(topic)).toBe(true),
  );

  test.each([
    "",
    "a/>",
    "a/*/b",
    "a*",
    "a\n",
    "a\u0000b",
    "a\u0085",
    "t".repeat(maxTopicBytes + 1),
    "é".repeat(maxTopicBytes / 2 + 1),
    "\ud800",
  ])("cannot be published to when it is %j", { tags: "promise-B4" }, (topic) =>
    expect(isPublishableTopic(topic)).toBe(false),
  );
});

/** The original's rule, as the regular expression that it makes of a pattern. */
function asOriginal(pattern: string): RegExp {
  const levels = pattern.split("/").map((one) => {
    if (one === "*") return "[^/]+";
    if (one === ">") return "[^\\n]*";
    return one.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  });
  return new RegExp(`^${levels.join("/")}\\n?$`);
}

describe("a subscription pattern", () => {
  test.each([
    ["a/*", "a/b", true],
    ["a/*", "a", false],
    ["a/*", "a/", false],
    ["a/*", "a/b/c", false],
    ["a/>", "a/b", true],
    ["a/>", "a/b/c", true],
    ["a/>", "a", false],
    ["a/>", "a/", true],
    ["a/>/c", "a/x/c", true],
    ["a/>/c", "a/c", false],
    ["a/>/c", "a/x/c/c", true],
    ["a/b*", "a/bcd", false],
    ["a/b*", "a/b*", true],
    ["*/b", "/b", false],
    ["a.b/c", "aXb/c", false],
    ["a/b", "A/B", false],
    ["a/b", "a/b\n", true],
    ["a/b", "a/b\n\n", false],
    ["a/>", "a/b\nc", false],
    [">", "a/b/c", true],
  ])("%j on topic %j: %j", (pattern, topic, matches) => {
    expect(topicMatches(pattern, topic)).toBe(matches);
  });

  const piece = fc.constantFrom("a", "b", "*", ">", "", "a\n", "\n", "a.", "b*");
  const path = fc.array(piece, { minLength: 1, maxLength: 6 }).map((levels) => levels.join("/"));
  test.prop([path, path], { numRuns: 5_000 })(
    "matches what the original matches",
    (pattern, topic) => {
      expect(topicMatches(pattern, topic)).toBe(asOriginal(pattern).test(topic));
    },
  );

  test("takes no longer for hostile patterns", () => {
    const compare = (levels: number) => (): void =>
      expect(topicMatches(`${">/".repeat(levels)}x`, "a/".repeat(2 * levels))).toBe(false);
    // Each level times each level is 4 times as much; to try every way to share them out is
    // thousands.
    expect(timesTheWork(compare(6), compare(12))).toBeLessThan(40);
    compare(1_000)();
  });
});
