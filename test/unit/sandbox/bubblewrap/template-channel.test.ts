/**
 * Orders to a template.
 */
import { type Duplex, duplexPair } from "node:stream";
import { describe, expect, test } from "vitest";
import { SandboxError } from "../../../../worker/sandbox/sandbox.ts";
import { TemplateChannel } from "../../../../worker/sandbox/bubblewrap/template/template-channel.ts";

const never = new AbortController().signal;
const order = (word: string) => ({ word, directory: "d", cpus: [] });

function open(): { channel: TemplateChannel; template: Duplex } {
  const [mine, template] = duplexPair();
  mine.on("error", () => undefined);
  return { channel: new TemplateChannel(mine), template };
}

async function ordered(template: Duplex): Promise<{ word: string }> {
  const line: unknown = await new Promise((resolve) => template.once("data", resolve));
  return JSON.parse(String(line)) as { word: string };
}

describe("an order to a template", () => {
  test("is answered with the child's number, and waits until the one before is", async () => {
    const { channel, template } = open();
    const [first, second] = [channel.fork(order("a"), never), channel.fork(order("b"), never)];
    expect(await ordered(template)).toMatchObject({ word: "a" });
    template.write('{"forked": 7}\n');
    expect(await first).toBe(7);
    expect(await ordered(template)).toMatchObject({ word: "b" });
    template.write('{"failed": "no memory"}\n');
    await expect(second).rejects.toThrow("no memory");
  });

  test("is given up at once when its call is, and its answer is not taken for another's", async () => {
    const { channel, template } = open();
    const [giving, waiting] = [new AbortController(), new AbortController()];
    const first = channel.fork(order("a"), giving.signal);
    const second = channel.fork(order("b"), waiting.signal);
    const third = channel.fork(order("c"), never);
    await ordered(template);
    giving.abort(new Error("enough"));
    waiting.abort(new Error("enough, too"));
    await expect(first).rejects.toThrow("enough");
    await expect(second).rejects.toThrow("enough, too");
    template.write('{"forked": 1}\n');
    expect(await ordered(template)).toMatchObject({ word: "c" });
    template.write('{"forked": 3}\n');
    expect(await third).toBe(3);
  });

  test("fails when the template ends, and after that", async () => {
    const { channel, template } = open();
    const first = channel.fork(order("a"), never);
    await ordered(template);
    template.destroy();
    await expect(first).rejects.toThrow(SandboxError);
    await expect(channel.fork(order("b"), never)).rejects.toThrow("a template has ended");
  });
});
