/**
 * Programs in children of a template, which has loaded the Python runner alone.
 */
import { type TestContext, beforeEach, expect, onTestFinished, test } from "vitest";
import { isFilteredArch } from "../../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import { templateHosts } from "../../../support/sandboxes/template-host.ts";

const openTemplateHost = templateHosts();

beforeEach((context) =>
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`),
);

async function open(context: TestContext) {
  const files = { "helper.py": "name = 'helper'\n" };
  const host = await openTemplateHost(context, { files, module: "" });
  const template = await host.openTemplate();
  onTestFinished(() => template[Symbol.asyncDispose]());
  return (code: string) => host.call<unknown>(template, code, { n: 2 });
}

test("each child of a template runs one program, and only one that awaits loads asyncio", async (context) => {
  const call = await open(context);
  const plain = "import sys\nprint('written')\nx = inputs['n']\n[x, 'asyncio' in sys.modules]";
  for (let count = 0; count < 2; count++) {
    expect(await call(plain)).toMatchObject({
      report: { exitCode: 0, stdout: { text: "written\n" }, stderr: { text: "" } },
      result: { value: [2, false], stdout: "written\n", stderr: "", displays: [] },
    });
  }
  const awaiting =
    "import asyncio, helper\nawait asyncio.sleep(0)\n[helper.name, 'x' in globals()]";
  expect(await call(awaiting)).toMatchObject({ result: { value: ["helper", false] } });
  const failing = await call("import sys\nsys.modules['__main__'].missing");
  expect(failing.error).toBe(
    "Program raised AttributeError: module '__main__' has no attribute 'missing' (line 2)",
  );
});
