/**
 * Topics as AMQP routing keys.
 */
import { fc, test } from "../../../support/properties/property.ts";
import { describe, expect } from "vitest";
import { bindingKey, routingKey, topicOf } from "../../../../worker/broker/amqp/routing-keys.ts";
import { topicMatches } from "../../../../worker/protocol/topics.ts";

/** Levels with everything that means something to a broker, and some text. */
const level = fc.string({
  unit: fc.constantFrom(".", "*", "#", "%", "2", "E", "a", "é", ">", " "),
  maxLength: 6,
});
const topics = fc.array(level, { minLength: 1, maxLength: 5 }).map((levels) => levels.join("/"));

/** Whether a topic exchange routes a key to a queue with this binding, as AMQP 0-9-1 has it. */
function routes(binding: string, key: string): boolean {
  const match = (wanted: readonly string[], words: readonly string[]): boolean => {
    const [first, ...rest] = wanted;
    if (first === undefined) return words.length === 0;
    if (first === "#") return words.some((_, n) => match(rest, words.slice(n))) || match(rest, []);
    const [word, ...others] = words;
    return word !== undefined && (first === "*" || first === word) && match(rest, others);
  };
  return match(binding.split("."), key.split("."));
}

describe("a routing key", () => {
  test.each([
    ["a/b/c", "a.b.c"],
    ["ed.test/tool-1.2", "ed%2Etest.tool-1%2E2"],
    ["a*/#b/50%", "a%2A.%23b.50%25"],
    ["a//b", "a..b"],
    ["répondre", "répondre"],
  ])("of %s is %s", (topic, key) => {
    expect(routingKey(topic)).toBe(key);
    expect(topicOf(key)).toBe(topic);
  });

  test.prop([topics])("gives the topic back", (topic) => {
    expect(topicOf(routingKey(topic))).toBe(topic);
  });

  test("is read with escapes in small letters, and with those of nobody", () => {
    expect(topicOf("a%2eb.%41%")).toBe("a.b/%41%");
  });

  test("that is too long is refused with its topic", () => {
    expect(routingKey("é".repeat(127))).toHaveLength(127);
    expect(() => routingKey("é".repeat(128))).toThrow(
      expect.objectContaining({
        transient: false,
        message: expect.stringMatching(/^The topic é+ takes a routing key of 256 bytes/),
      }),
    );
  });
});

describe("a binding key", () => {
  test.each([
    ["a/*/c", "a.*.c"],
    ["a/>", "a.*.#"],
    [">", "*.#"],
    ["*", "*"],
    ["ed.test/>", "ed%2Etest.*.#"],
    ["a/b>", "a.b>"],
  ])("of %s is %s", (pattern, key) => {
    expect(bindingKey(pattern)).toBe(key);
  });

  const filled = fc.stringMatching(/^[ab.#%]{1,2}$/);
  const patterns = fc
    .tuple(fc.array(fc.oneof(filled, fc.constant("*")), { maxLength: 3 }), fc.boolean())
    .map(([levels, isOpen]) => [...levels, isOpen || levels.length === 0 ? ">" : "a"].join("/"));
  const names = fc.array(filled, { minLength: 1, maxLength: 5 }).map((levels) => levels.join("/"));

  test.prop([patterns, names])("matches what the pattern matches", (pattern, topic) => {
    expect(routes(bindingKey(pattern), routingKey(topic))).toBe(topicMatches(pattern, topic));
  });
});
