/**
 * A child whose standard input is a socket in both directions.
 */
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { startSubprocess } from "../../../../worker/sandbox/subprocess.ts";
import { inheritableDescriptors } from "../../../../worker/support/inherited-descriptors.ts";

async function start(script: string, env: Readonly<Record<string, string>> = {}) {
  const child = await startSubprocess({
    file: "/bin/sh",
    argv: ["-c", script],
    env,
    inputs: ["first input"],
    hasReport: true,
    hasChannel: true,
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
    child.close();
  });
  return child;
}

test("a child talks with the worker by its descriptor 0", async () => {
  const { channel, exited } = await start('read line; echo "heard $line" >&0');
  channel!.write("hello\n");
  const [answer] = (await once(channel!, "data")) as [Buffer];
  expect(answer.toString()).toBe("heard hello\n");
  expect(await exited).toEqual({ exitCode: 0, signal: undefined });
});

test("it has the other descriptors at their places, and no more", async () => {
  const child = await start("cat <&3; echo report >&4; exec 3<&- 4<&-; echo; exec ls /dev/fd/");
  const [report] = (await once(child.report!, "data")) as [Buffer];
  expect(report.toString()).toBe("report\n");
  await child.closed;
  const [input, ...descriptors] = child.output().stdout.text.trim().split("\n");
  expect(input).toBe("first input");
  const inherited = inheritableDescriptors().map(String);
  // The fourth is the listing itself.
  const own = descriptors.filter((descriptor) => !inherited.includes(descriptor));
  expect(own).toEqual(["0", "1", "2", "3"]);
});

test.for([{}, { GREETING: "two words" }])("its environment is %j", async (env) => {
  const child = await start("exec /usr/bin/cat /proc/self/environ", env);
  await child.closed;
  // The shell of the script hands on what it has got and where it is.
  const seen = child
    .output()
    .stdout.text.split("\0")
    .filter((pair) => !/^(PWD=|$)/.test(pair));
  expect(seen).toEqual(Object.entries(env).map(([name, value]) => `${name}=${value}`));
});

test("a program that is not there is an exit status", async () => {
  const child = await startSubprocess({ file: "/no/such", argv: [], env: {}, hasChannel: true });
  onTestFinished(() => child.close());
  expect(await child.exited).toEqual({ exitCode: 127, signal: undefined });
  await child.closed;
  expect(child.output().stderr.text).toContain("/no/such");
});

test("its stream begins with the output before the first reader", async () => {
  const child = await start("echo early; read line; echo late");
  await expect.poll(() => child.output().stdout.text).toBe("early\n");
  let heard = "";
  child.stdout.on("data", (chunk: Buffer) => (heard += chunk.toString()));
  child.channel!.write("go\n");
  await once(child.stdout, "end");
  expect(heard).toBe("early\nlate\n");
});
