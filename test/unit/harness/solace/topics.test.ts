/**
 * Solace's wildcards.
 */
import { describe, expect, test } from "vitest";
import { parseSubscription, topicMatches } from "../../../../harness/fakes/solace/topics.ts";

describe("a pattern", () => {
  test.each([
    ["a/b", "a/b"],
    ["a/*", "a/b"],
    ["a/*/c", "a/b/c"],
    ["a/b*", "a/b"],
    ["a/b*/c", "a/bcd/c"],
    ["a/>", "a/b"],
    ["a/>", "a/b/c/d"],
    [">", "a"],
    ["*/>", "a/b"],
    ["é/*", "é/ü"],
    ["#P2P/v:r/1/c/>", "#P2P/v:r/1/c/#REQ1"],
  ])("%s matches %s", (pattern, topic) => {
    expect(topicMatches(pattern, topic)).toBe(true);
  });

  test.each([
    ["a/b", "a/b/c"],
    ["a/b/c", "a/b"],
    ["a/*", "a"],
    ["a/*", "a/b/c"],
    ["a/*", "a/"],
    ["a/b*", "a/c"],
    ["a/b*", "a/bc/d"],
    ["a/*b", "a/xb"],
    ["a/>", "a"],
    ["a/>/c", "a/b/c"],
    ["A/b", "a/b"],
    [">", "#P2P/v:r/1/c"],
    ["*/v:r/1/c", "#P2P/v:r/1/c"],
  ])("%s does not match %s", (pattern, topic) => {
    expect(topicMatches(pattern, topic)).toBe(false);
  });
});

test.each([
  ["a/>", "a/>", undefined],
  ["#share/g/a/>", "a/>", "g"],
  ["#noexport/a/>", "a/>", undefined],
  ["#noexport/#share/g/a/>", "a/>", "g"],
  ["#share/g", "#share/g", undefined],
])("%s subscribes to %s in group %s", (text, pattern, group) => {
  expect(parseSubscription(text)).toEqual({ text, pattern, group });
});
