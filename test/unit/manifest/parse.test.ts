/**
 * What a manifest file may say and how it is told what is wrong with it.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  ManifestError,
  type ToolEntry,
  type WarmBounds,
  startModes,
} from "../../../worker/manifest/manifest.ts";
import { answeredTools } from "../../../worker/manifest/manifest.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";
import { maxTools } from "../../../worker/manifest/schema.ts";
import { defaultWarm, maxWarm } from "../../../worker/manifest/fields/warm.ts";
import { invokeTopic, maxNamespaceBytes, maxTopicBytes } from "../../../worker/protocol/topics.ts";
import { formatProblem, maxProblems } from "../../../worker/support/file-problems.ts";
import { packages, parse, profileNames, textOf, tool } from "./fixtures.ts";

/** Section 6 of the design document. */
const designManifest = `version: 1

tools:
  echo_tool:
    runtime: python
    module: example_tools
    function: echo_tool
    description: "Echo back a message"

  execute_python:
    runtime: python
    module: example_tools
    function: execute_python
    timeout_seconds: 60
    sandbox_profile: restrictive

  data_processor:
    runtime: python
    package: sam-tool-data-processor
    version: ">=1.0,<2.0"
    module: sam_tool_data_processor
    function: process_data
    description: "Process data files"
    timeout_seconds: 600
    sandbox_profile: permissive
`;

/** The lines of the error that parsing this text ends with. */
function problemsOf(text: string): string[] {
  try {
    parse(text);
  } catch (error) {
    expect(error).toBeInstanceOf(ManifestError);
    return (error as ManifestError).message.split("\n");
  }
  throw new Error(`parsed: ${text}`);
}

function warningsOf(text: string): string[] {
  return parse(text).warnings.map((warning) => formatProblem("m.yaml", warning));
}

describe("a good manifest", () => {
  test("gives the entries of the design document's example", () => {
    const { manifest, warnings } = parse(designManifest);
    expect([...manifest.tools]).toEqual([
      [
        "echo_tool",
        tool("echo_tool", {
          module: "example_tools",
          callable: { kind: "function", name: "echo_tool" },
          description: "Echo back a message",
        }),
      ],
      [
        "execute_python",
        tool("execute_python", {
          module: "example_tools",
          callable: { kind: "function", name: "execute_python" },
          timeoutSeconds: 60,
          profile: "restrictive",
        }),
      ],
      [
        "data_processor",
        tool("data_processor", {
          module: "sam_tool_data_processor",
          callable: { kind: "function", name: "process_data" },
          description: "Process data files",
          packages: packages("sam-tool-data-processor>=1.0,<2.0"),
          timeoutSeconds: 600,
          profile: "permissive",
        }),
      ],
    ]);
    expect(warnings).toEqual([]);
    expect(manifest.unavailable.size).toBe(0);
  });

  test("is the manifest of the example tools, without a warning", async () => {
    const path = fileURLToPath(new URL("../../../examples/tools/manifest.yaml", import.meta.url));
    const { manifest, warnings } = parseManifest(await readFile(path), {
      path,
      profileNames,
    });
    expect([...manifest.tools.keys()]).toContain("echo_tool");
    expect(warnings).toEqual([]);
  });

  test("has the SHA-256 of its bytes as revision", () => {
    const expected = createHash("sha256").update(designManifest).digest("hex");
    expect(parse(designManifest).manifest.revision).toBe(expected);
  });

  test("may have no tools when it says so", () => {
    expect(parse("version: 1\ntools: {}\n").manifest.tools.size).toBe(0);
  });

  test("may leave out its version, which is a warning", () => {
    for (const text of ["tools: {}\n", "version:\ntools: {}\n"]) {
      expect(parse(text).manifest.tools.size).toBe(0);
      expect(warningsOf(text)).toEqual(["m.yaml:1:1: version: missing, taken for 1"]);
    }
  });

  test("may have its numbers in quotes", () => {
    const text = `version: "1"
tools:
  a:
    module: m
    function: f
    timeout_seconds: "1.5"
    limits: {memory_mb: "512"}
    warm: {min: "1", max: '2'}
`;
    expect(parse(text).manifest.tools.get("a")).toMatchObject({
      timeoutSeconds: 1.5,
      limits: { memoryBytes: 512 * 1024 * 1024 },
      warm: { min: 1, max: 2 },
    });
    expect(warningsOf(text)).toEqual([]);
  });

  test("may have a function beside a class, which goes before it, with a warning", () => {
    const text = "version: 1\ntools:\n  a:\n    module: m\n    function: f\n    class_name: C\n";
    expect(parse(text).manifest.tools.get("a")?.callable).toEqual({ kind: "class", name: "C" });
    expect(warningsOf(text)).toEqual([
      'm.yaml:5:5: tool "a": function: not used, since there is a "class_name"',
    ]);
  });

  test("takes an empty optional value for an absent one", () => {
    const text = `version: 1
tools:
  echo:
    module: tools
    function: run
    runtime:
    package:
    version: ~
    description: null
    timeout_seconds:
    sandbox_profile:
    env:
`;
    expect(parse(text).manifest.tools.get("echo")).toEqual(tool("echo"));
  });

  test("may grant fractions of a second", () => {
    const text = "version: 1\ntools: {a: {module: m, function: f, timeout_seconds: 0.5}}";
    expect(parse(text).manifest.tools.get("a")?.timeoutSeconds).toBe(0.5);
  });

  test("hands a version constraint on as one word", () => {
    const text = `version: 1
tools: {a: {module: m, function: f, package: p, version: " >= 1.0 ,\\t< 2 "}}`;
    expect(parse(text).manifest.tools.get("a")?.packages).toEqual(packages("p>=1.0,<2"));
  });

  test("names each environment variable once", () => {
    const text = "version: 1\ntools: {a: {module: m, function: f, env: [API_KEY, B, API_KEY]}}";
    expect(parse(text).manifest.tools.get("a")?.env).toEqual(["API_KEY", "B"]);
  });

  test("may share fields through anchors and merge keys, as PyYAML reads them", () => {
    const text = `version: 1
tools:
  a: &base {module: tools, function: run, timeout_seconds: 5}
  b: {<<: *base, function: other}
  c: *base
`;
    const { tools } = parse(text).manifest;
    expect(tools.get("b")).toEqual(
      tool("b", { callable: { kind: "function", name: "other" }, timeoutSeconds: 5 }),
    );
    expect(tools.get("c")).toEqual(tool("c", { timeoutSeconds: 5 }));
  });

  test("may call tools by names that are numbers or members of every object", () => {
    const names = ["1.50", "0x10", "true", "null", "constructor", "toString", "hasOwnProperty"];
    expect([...parse(textOf(...names)).manifest.tools.keys()].sort()).toEqual(names.sort());
  });

  test("may start with a byte order mark and end its lines the Windows way", () => {
    const text = `\uFEFF${designManifest.replaceAll("\n", "\r\n")}`;
    expect(parse(text).manifest.tools.size).toBe(3);
  });

  test(`has up to ${maxTools} tools`, () => {
    const names = Array.from({ length: maxTools }, (_, i) => `tool_${i}`);
    expect(parse(textOf(...names)).manifest.tools.size).toBe(maxTools);
  });
});

describe("a tool of another kind of worker", () => {
  const text = `version: 1
tools:
  by_file: {executable: bin/tool, runtime: go, tool_dir: /t}
  by_null: {function: null, class_name: null, executable: bin/tool}
  ours: {module: tools, function: run, class_name: null, executable: null}
`;

  test("is left to others by a worker without executables, whatever its fields are", () => {
    const { manifest } = parse(text.replace("/t}", "../t, tools: 7}"), { runsExecutables: false });
    expect([...manifest.tools.keys()]).toEqual(["ours"]);
    const reason = "it is an executable, and this worker has no directory of executables";
    const foreign = { reason, publicReason: reason, entry: undefined };
    expect([...manifest.unavailable]).toEqual([
      ["by_file", foreign],
      ["by_null", foreign],
    ]);
    expect([...answeredTools(manifest).keys()]).toEqual(["ours"]);
  });

  test("is an executable of a worker that runs them, and may have limits by other names", () => {
    const limits =
      "{max_open_files: 64, max_processes: 1, max_file_size_mb: 2, max_stack_size_mb: 8}";
    const { tools } = parse(
      `${text}  limited: {executable: x, resource_limits: ${limits}, limits: {open_files: 32}}\n`,
    ).manifest;
    const executable = (name: string, module: string, more = {}) =>
      tool(name, {
        runtime: "executable",
        module,
        callable: { kind: "program", name },
        ...more,
      });
    expect(tools.get("by_file")).toEqual(executable("by_file", "bin/tool", { toolDir: "/t" }));
    expect(tools.get("by_null")).toEqual(executable("by_null", "bin/tool"));
    expect(tools.get("limited")).toEqual(
      executable("limited", "x", {
        limits: { openFiles: 32, processes: 4, fileSizeBytes: 2 * 1024 * 1024 },
      }),
    );
  });
});

describe("an entry that provides several tools", () => {
  test("has no description of its own, with a warning", () => {
    const { manifest, warnings } = parse(`version: 1
tools:
  kit: {runtime: executable, executable: kit, tools: [a], description: d, parameters: {}}
`);
    expect(manifest.tools.get("a")).toMatchObject({ description: undefined, described: {} });
    expect(warnings.map(({ field, message }) => [field, message])).toEqual([
      ["description", 'not used, since "tools" names several tools'],
      ["parameters", 'not used, since "tools" names several tools'],
    ]);
  });

  test("is each tool that it names, and none by its own name", () => {
    const { tools } = parse(`version: 1
tools:
  kit: {runtime: executable, executable: kit, tools: [a, b]}
  weather: {module: weather, class_name: Weather, tools: [forecast]}
`).manifest;
    expect([...tools.keys()]).toEqual(["a", "b", "forecast"]);
    expect(tools.get("b")?.callable).toEqual({ kind: "program", name: "b" });
    expect(tools.get("forecast")?.callable).toEqual({
      kind: "provider",
      name: "Weather",
      provides: "forecast",
    });
  });

  test.each([
    [
      "a name that is taken",
      "x: {runtime: go, executable: x, tools: [y]}\n  y: {module: m, function: f}",
    ],
    ["no name", "x: {runtime: go, executable: x, tools: []}"],
    ["a name that no topic has", "x: {runtime: go, executable: x, tools: [a/b]}"],
    ["a function", "x: {module: m, function: f, tools: [a]}"],
    ["a Node module", "x: {runtime: node, module: m.js, function: f, tools: [a]}"],
  ])("does not have %s", (_, entries) => {
    expect(() => parse(`version: 1\ntools:\n  ${entries}\n`)).toThrow(/tool "[xy]"/);
  });
});

describe("a program's path", () => {
  const parsed = (fields: string) =>
    parse(`version: 1\ntools:\n  x: {runtime: executable, ${fields}}\n`).manifest.tools.get("x");

  test.each(["a", "bin/a.sh", "./a".slice(2), "..a", "a.b/c-d", "@scope/x"])(
    "may be %s",
    (path) => {
      expect(parsed(`executable: "${path}"`)?.module).toBe(path);
    },
  );

  test.each([
    "",
    "/a",
    "..",
    "../a",
    "a/../b",
    "a/..",
    "./a",
    "a//b",
    "a/",
    "-rf",
    "a/-x",
    "a\\nb",
  ])("is not %j", (path) => {
    expect(() => parsed(`executable: "${path}"`)).toThrow(/executable: expected the path/);
  });

  test.each(["../x", "a/..", "/", "a//b"])("is not below the directory %j", (directory) => {
    expect(() => parsed(`executable: a, tool_dir: "${directory}"`)).toThrow(/tool_dir: expected/);
  });
});

describe("a key that is not used", () => {
  test("is a warning at its place, not an error", () => {
    const text = `version: 1
default: x
tools:
  echo:
    module: tools
    function: run
    timeout_secs: 5
    resource_limits:
      max_processes: 5
    executable: bin/echo
`;
    const keys =
      "runtime, module, function, class_name, tools, package, version, requirements, requirements_file, lockfile, install_scripts, python, node, description, instructions, parameters, output_schema, config_schema, artifact_params, validate, coerce, timeout_seconds, sandbox_profile, limits, network, isolate, mounts, devices, idempotent, queue, start, warm, env, gateway, allowed_callers, namespace, tags, examples";
    expect(warningsOf(text)).toEqual([
      "m.yaml:2:1: default: unknown key, not used; the keys are version, credentials, tools",
      `m.yaml:7:5: tool "echo": timeout_secs: unknown key, not used; the keys are ${keys}`,
      'm.yaml:8:5: tool "echo": resource_limits: not used by this worker',
      'm.yaml:10:5: tool "echo": executable: not used by this worker',
    ]);
    expect(parse(text).manifest.tools.get("echo")).toEqual(tool("echo"));
  });

  test("is told as often as problems are told, with the number of the others", () => {
    const keys = Array.from({ length: maxProblems + 7 }, (_, i) => `key_${i}: 1\n`).join("");
    const warnings = warningsOf(`version: 1\ntools: {}\n${keys}`);
    expect(warnings).toHaveLength(maxProblems + 1);
    expect(warnings.at(-1)).toBe("m.yaml:103:1: and 7 more from here on");
  });

  test("is quoted when it is not a plain word, so that a warning stays one line", () => {
    expect(warningsOf(`version: 1\ntools: {}\n"a\\nb": 1\n${"x".repeat(70)}: 1`)).toEqual([
      'm.yaml:3:1: "a\\nb": unknown key, not used; the keys are version, credentials, tools',
      `m.yaml:4:1: "${"x".repeat(60)}"…: unknown key, not used; the keys are version, credentials, tools`,
    ]);
  });

  test("can be a tag", () => {
    expect(warningsOf("version: 1\ntools: !special {}")).toEqual([
      "m.yaml:2:8: Unresolved tag: !special",
    ]);
  });
});

const aMap = "a map of tool names, or {} for no tools";
const aVersion = "1, the version of the manifest format that this worker reads";
const aModule = 'a Python import path such as "package.module"';
const aFunction = "the name of a Python function (letters, digits and _)";
const aPackage =
  "the name of a Python package (letters, digits, ., _ and -), without extras, version or URL";
const aPython =
  'a version in quotes, such as "3.12", a name of the worker\'s interpreters, or the absolute path of one';
const aConstraint = 'a PEP 440 version constraint in quotes, such as ">=1.0,<2.0" or "==1.4.2"';
const aWarm = 'a map of "min" and "max"';
const aCount = "a whole number from 0 to 64";
const aTime = "a number of seconds above 0 and at most 86400";
const anEnvList = "a list of at most 64 names of environment variables";
const anEnvName =
  "expected the name of an environment variable (letters, digits and _), without value";
const notPassedOn =
  "cannot be passed on: it is set by the sandbox or changes how programs load in it";

describe("a file that is no manifest is refused with the place:", () => {
  test.for<[string, string, string[]]>([
    ["empty", "", ['1:1: expected a map with "version" and "tools", found nothing']],
    [
      "only comments",
      "# soon\n",
      ['1:1: expected a map with "version" and "tools", found nothing'],
    ],
    ["a list", "- a\n", ['1:1: expected a map with "version" and "tools", found a list']],
    ["text", "hello", ['1:1: expected a map with "version" and "tools", found "hello"']],
    ["no tools", "version: 1", [`1:1: tools: required: ${aMap}`]],
    ["cut after tools", "version: 1\ntools:\n", [`2:1: tools: expected ${aMap}, found nothing`]],
    ["a list of tools", "version: 1\ntools: []", [`2:1: tools: expected ${aMap}, found a list`]],
    [
      "everything wrong",
      "version: 2\ntools: x",
      [`1:10: version: expected ${aVersion}, found 2`, `2:8: tools: expected ${aMap}, found "x"`],
    ],
    [
      "version as text",
      'version: "2"\ntools: {}',
      [`1:10: version: expected ${aVersion}, found 2`],
    ],
    [
      "two documents",
      "version: 1\n---\nx",
      ["2:1: expected one YAML document, found the start of another"],
    ],
    [
      "a misspelt key",
      "versoin: 1\ntool: {}\ntools: {}",
      [
        '1:1: versoin: unknown key; is "version" meant?',
        '2:1: tool: unknown key; is "tools" meant?',
      ],
    ],
    [
      "a key twice",
      "version: 1\ntools: {}\nversion: 1",
      ['3:1: key "version" is already in line 1'],
    ],
    ["a tool twice", textOf("a", "b", "a"), ['5:3: key "a" is already in line 3']],
    ["a list as key", "? [a]\n: b", ["1:3: expected a plain text key"]],
    ["tabs", "version: 1\ntools:\n\ta: {}", ["3:1: Tabs are not allowed as indentation"]],
    ["no anchor", "version: 1\ntools: *none", ["2:8: alias *none has no anchor &none before it"]],
    [
      "a bad merge",
      "version: 1\ntools: {<<: 3}",
      ["1:1: Merge sources must be maps or map aliases"],
    ],
  ])("%s", ([, text, problems]) => {
    expect(problemsOf(text)).toEqual(problems.map((problem) => `m.yaml:${problem}`));
  });

  test("bytes that are not UTF-8", () => {
    const bytes = Buffer.concat([
      Buffer.from("version: 1\n# ü\n# "),
      Buffer.of(0xfc),
      Buffer.from("\n"),
    ]);
    expect(() => parseManifest(bytes, { path: "m.yaml", profileNames })).toThrow(
      "m.yaml:3:1: not valid UTF-8",
    );
  });

  test("more tools than can be subscribed", () => {
    const names = Array.from({ length: maxTools + 1 }, (_, i) => `tool_${i}`);
    expect(problemsOf(textOf(...names))).toEqual([
      `m.yaml:2:1: tools: expected at most ${maxTools} tools, found ${maxTools + 1}`,
    ]);
  });

  test("anchors that unfold without end", () => {
    const lines = ["a0: &a0 {x: 1}"];
    for (let i = 1; i < 30; i++) lines.push(`a${i}: &a${i} [*a${i - 1}, *a${i - 1}]`);
    expect(problemsOf(lines.join("\n"))).toEqual([
      expect.stringContaining("m.yaml:1:1: Excessive alias count"),
    ]);
  });

  test("brackets without end", () => {
    expect(problemsOf("[".repeat(20_000))[0]).toMatch(/^m\.yaml:1:\d+: nested too deeply$/);
  });
});

describe("a Node tool", () => {
  const parsed = (fields: string) => () =>
    parse(`version: 1\ntools:\n  x: {runtime: node, ${fields}}\n`).manifest.tools.get("x");

  test.each(["tool.ts", "weather/forecast.mjs", "@scope/tools-1/a.b.mts", "_x.js"])(
    "is in the file %s",
    (module) => {
      expect(parsed(`module: "${module}", function: $run`)()).toMatchObject({
        runtime: "node",
        module,
        callable: { kind: "function", name: "$run" },
      });
    },
  );

  test.each(["24", "24.1.0", "nightly", "/opt/node25/bin/node"])("may name its Node %s", (node) => {
    expect(parsed(`module: a.ts, function: f, node: "${node}"`)()).toMatchObject({
      interpreter: node,
    });
  });

  test.each([
    ["module: m, function: f, python: 3.10", "3.10"],
    ["module: m, function: f, python: 3.12", "3.12"],
    ["runtime: node, module: a.ts, function: f, node: 24", "24"],
  ])("may have a version without quotes: %s", (fields, interpreter) => {
    const { tools } = parse(`version: 1\ntools:\n  x: {${fields}}\n`).manifest;
    expect(tools.get("x")).toMatchObject({ interpreter });
  });

  test.each(["tool", "/abs.ts", "../up.ts", "a/../b.ts", "a//b.ts", "./tool.ts", "a/.ts", "x.cjs"])(
    "is not in %j",
    (module) => {
      expect(parsed(`module: "${module}", function: run`)).toThrow(
        "module: expected the path of a .js, .mjs, .ts or .mts file below the directory of Node tools",
      );
    },
  );

  test.each([
    ["class_name: C", "class_name"],
    ['python: "3.12"', "python"],
    ["requirements_file: a.txt", "requirements_file"],
  ])("has no %s", (field, name) => {
    expect(parsed(`module: a.ts, function: f, ${field}`)).toThrow(
      `${name}: allowed only with runtime python`,
    );
  });
});

test("a class tool is called by its class", () => {
  const text = "version: 1\ntools:\n  x: {module: m, class_name: Weather, idempotent: false}\n";
  expect(parse(text).manifest.tools.get("x")).toEqual(
    tool("x", { module: "m", callable: { kind: "class", name: "Weather" }, idempotent: false }),
  );
});

describe("the queue of a tool", () => {
  const text =
    "version: 1\ntools:\n  a: {module: m, function: f}\n  b: {module: m, function: f, queue: heavy}\n";
  const parsedWith = (queues?: readonly string[]) =>
    parseManifest(Buffer.from(text), { path: "m.yaml", profileNames, ...(queues && { queues }) });

  test("is the default queue unless the manifest names another", () => {
    const { tools } = parsedWith().manifest;
    expect(Array.from(tools.values(), ({ queue }) => queue)).toEqual(["default", "heavy"]);
  });

  test("leaves the tool to other workers where this one does not consume it", () => {
    const { manifest } = parsedWith(["default", "other"]);
    expect([...manifest.tools.keys()]).toEqual(["a"]);
    const reason = 'its queue "heavy" is none of WORKER_QUEUES; other workers serve it';
    expect(manifest.unavailable.get("b")).toEqual({
      reason,
      publicReason: reason,
      entry: undefined,
      queue: "heavy",
    });
    expect([...answeredTools(manifest).keys()]).toEqual(["a"]);
  });
});

describe("how calls of a tool come to their sandboxes", () => {
  const startOf = (fields: string): Pick<ToolEntry, "start" | "warm"> => {
    const { start, warm } = parse(
      `version: 1\ntools:\n  x: {module: m, function: f, ${fields}}\n`,
    ).manifest.tools.get("x")!;
    return { start, warm };
  };

  test("is left to the worker unless the manifest says something", () => {
    const unsaid = { start: "auto", warm: defaultWarm };
    for (const fields of ["", "start: , warm: ", "warm: {}", "warm: {min: , max: }"])
      expect(startOf(fields)).toEqual(unsaid);
  });

  test.each(startModes)("can be %s", (mode) => {
    expect(startOf(`start: ${mode}`)).toMatchObject({ start: mode });
  });

  test.for<[string, WarmBounds]>([
    ["{min: 2, max: 8}", { min: 2, max: 8 }],
    ["{min: 3}", { min: 3, max: defaultWarm.max }],
    [`{min: ${defaultWarm.max + 1}}`, { min: defaultWarm.max + 1, max: defaultWarm.max + 1 }],
    ["{max: 4}", { min: 0, max: 4 }],
    ["{max: 0}", { min: 0, max: 0 }],
    [`{min: ${maxWarm}, max: ${maxWarm}}`, { min: maxWarm, max: maxWarm }],
  ])("has so many waiting as the manifest says: %s", ([warm, bounds]) => {
    expect(startOf(`warm: ${warm}`).warm).toEqual(bounds);
  });
});

describe("a wrong field is refused with what is accepted and what was found:", () => {
  /** The problem of a tool `x` of which the field is on line 6, in column 5. */
  function entry(field: string): string {
    return `version: 1\ntools:\n  x:\n    module: m\n    function: f\n    ${field}\n`;
  }

  test.for<[string, string]>([
    [
      "runtime: go",
      '6:14: tool "x": runtime: expected one of python, node, executable, code, found "go"',
    ],
    ["idempotent: no way", '6:17: tool "x": idempotent: expected true or false, found "no way"'],
    [
      "queue: a/b",
      '6:12: tool "x": queue: expected the name of a queue: 1 to 50 letters, digits, _ and -, found "a/b"',
    ],
    [
      "start: hot",
      '6:12: tool "x": start: expected one of auto, cold, pool, template, found "hot"',
    ],
    [
      "start: [pool]",
      `6:5: tool "x": start: expected one of ${startModes.join(", ")}, found a list`,
    ],
    ["warm: 3", `6:11: tool "x": warm: expected ${aWarm}, found 3`],
    ["warm: {min: 1.5}", `6:17: tool "x": warm.min: expected ${aCount}, found 1.5`],
    ["warm: {max: -1}", `6:17: tool "x": warm.max: expected ${aCount}, found -1`],
    ["warm: {max: 65}", `6:17: tool "x": warm.max: expected ${aCount}, found 65`],
    ['warm: {min: "-1"}', `6:17: tool "x": warm.min: expected ${aCount}, found -1`],
    ['warm: {min: "1 "}', `6:17: tool "x": warm.min: expected ${aCount}, found "1 "`],
    [
      "warm: {min: 5, max: 4}",
      '6:17: tool "x": warm.min: expected at most max, which is 4, found 5',
    ],
    ["warm: {most: 4}", '6:12: tool "x": warm.most: unknown key; the keys are min, max'],
    ["python: 3.10e1", `6:13: tool "x": python: expected ${aPython}, found 31`],
    ["python: -3.1", `6:13: tool "x": python: expected ${aPython}, found -3.1`],
    ['python: ""', `6:13: tool "x": python: expected ${aPython}, found ""`],
    ["python: -c", `6:13: tool "x": python: expected ${aPython}, found "-c"`],
    ["python: bin/python3", `6:13: tool "x": python: expected ${aPython}, found "bin/python3"`],
    ['node: "24"', '6:11: tool "x": node: allowed only with runtime node'],
    ["package: -r", `6:14: tool "x": package: expected ${aPackage}, found "-r"`],
    ["package: p[extra]", `6:14: tool "x": package: expected ${aPackage}, found "p[extra]"`],
    ["package: p>=1", `6:14: tool "x": package: expected ${aPackage}, found "p>=1"`],
    ['package: ""', `6:14: tool "x": package: expected ${aPackage}, found ""`],
    [
      "package: git+https://me:pw@h/p",
      `6:14: tool "x": package: expected ${aPackage}, found a URL`,
    ],
    ["version: '>=1'", '6:14: tool "x": version: allowed only together with "package"'],
    [
      "version: >=1.0",
      "6:15: Block scalar header includes extra characters: >=1.0 (text that starts with > or | needs quotes)",
    ],
    ["description: [a]", '6:5: tool "x": description: expected text, found a list'],
    ["timeout_seconds: abc", `6:22: tool "x": timeout_seconds: expected ${aTime}, found "abc"`],
    ['timeout_seconds: "60s"', `6:22: tool "x": timeout_seconds: expected ${aTime}, found "60s"`],
    ['timeout_seconds: "0"', `6:22: tool "x": timeout_seconds: expected ${aTime}, found 0`],
    [
      "sandbox_profle: x",
      '6:5: tool "x": sandbox_profle: unknown key; is "sandbox_profile" meant?',
    ],
    ["netwrk: none", '6:5: tool "x": netwrk: unknown key; is "network" meant?'],
    [
      "timeoutSeconds: 5",
      '6:5: tool "x": timeoutSeconds: unknown key; is "timeout_seconds" meant?',
    ],
    ["timeout_seconds: 0", `6:22: tool "x": timeout_seconds: expected ${aTime}, found 0`],
    ["timeout_seconds: 86401", `6:22: tool "x": timeout_seconds: expected ${aTime}, found 86401`],
    ["timeout_seconds: .nan", `6:22: tool "x": timeout_seconds: expected ${aTime}, found NaN`],
    ["timeout_seconds: .inf", `6:22: tool "x": timeout_seconds: expected ${aTime}, found Infinity`],
    ["timeout_seconds: true", `6:22: tool "x": timeout_seconds: expected ${aTime}, found true`],
    [
      "sandbox_profile: strict",
      '6:22: tool "x": sandbox_profile: expected one of restrictive, standard, permissive (own ones come from SANDBOX_PROFILES_FILE), found "strict"',
    ],
    ["env: API_KEY", `6:10: tool "x": env: expected ${anEnvList}, found "API_KEY"`],
    ["env: {API_KEY: secret}", `6:5: tool "x": env: expected ${anEnvList}, found a map`],
    ["env: [OK, API_KEY=secret]", `6:15: tool "x": env[1]: ${anEnvName}`],
    ["env: [LD_PRELOAD]", `6:11: tool "x": env[0]: "LD_PRELOAD" ${notPassedOn}`],
    ["env: [PYTHONPATH]", `6:11: tool "x": env[0]: "PYTHONPATH" ${notPassedOn}`],
    ["env: [PATH]", `6:11: tool "x": env[0]: "PATH" ${notPassedOn}`],
  ])("%s", { tags: "promise-R8" }, ([field, problem]) => {
    expect(problemsOf(entry(field))).toEqual([`m.yaml:${problem}`]);
  });

  test.for<[string, string]>([
    ["1.2", "1.2"],
    ['"1.2"', '"1.2"'],
    ['""', '""'],
    ['"^1.2"', '"^1.2"'],
    ['">=1,"', '">=1,"'],
    ['"~=1"', '"~=1"'],
    ["'>=1; import os'", '">=1; import os"'],
    [`"==1.${"0".repeat(300)}"`, `"==1.${"0".repeat(56)}"…`],
  ])("version: %s", ([version, found]) => {
    const text = entry(`package: p\n    version: ${version}`);
    expect(problemsOf(text)).toEqual([
      `m.yaml:7:14: tool "x": version: expected ${aConstraint}, found ${found}`,
    ]);
  });

  test("too many environment variables", () => {
    const names = Array.from({ length: 65 }, (_, i) => `N${i}`);
    expect(problemsOf(entry(`env: [${names.join(", ")}]`))).toEqual([
      `m.yaml:6:5: tool "x": env: expected ${anEnvList}, found a list`,
    ]);
  });

  test("a field that was merged in, at the tool", () => {
    const text = `version: 1
tools:
  a: &base {module: m, function: f, timeout_seconds: 0}
  b:
    <<: *base
`;
    expect(problemsOf(text)).toEqual([
      `m.yaml:3:54: tool "a": timeout_seconds: expected ${aTime}, found 0`,
      `m.yaml:4:3: tool "b": timeout_seconds: expected ${aTime}, found 0`,
    ]);
  });

  test("all of them at once, in reading order", () => {
    const text = `version: 3
tools:
  empty:
  text: x
  nothing: {}
  bad name: {module: "a..b", function: f-g}
  late: {module: -m, timeout_seconds: no, version: "1"}
`;
    expect(problemsOf(text)).toEqual([
      `m.yaml:1:10: version: expected ${aVersion}, found 3`,
      'm.yaml:3:3: tool "empty": expected a map of fields, found nothing',
      'm.yaml:4:9: tool "text": expected a map of fields, found "x"',
      `m.yaml:5:3: tool "nothing": module: required: ${aModule}`,
      `m.yaml:5:3: tool "nothing": function: required: the name of a Python function, or class_name in its place`,
      'm.yaml:6:3: tool "bad name": the name has characters other than A-Z a-z 0-9 . _ -',
      `m.yaml:6:22: tool "bad name": module: expected ${aModule}, found "a..b"`,
      `m.yaml:6:40: tool "bad name": function: expected ${aFunction}, found "f-g"`,
      `m.yaml:7:3: tool "late": function: required: the name of a Python function, or class_name in its place`,
      `m.yaml:7:18: tool "late": module: expected ${aModule}, found "-m"`,
      `m.yaml:7:39: tool "late": timeout_seconds: expected ${aTime}, found "no"`,
      `m.yaml:7:52: tool "late": version: expected ${aConstraint}, found "1"`,
      'm.yaml:7:52: tool "late": version: allowed only together with "package"',
    ]);
  });

  test("up to a number, which is then told", () => {
    const names = Array.from({ length: 80 }, (_, i) => `  t${i}: {}\n`).join("");
    const problems = problemsOf(`version: 1\ntools:\n${names}`);
    expect(problems).toHaveLength(maxProblems + 1);
    expect(problems.at(-1)).toBe("m.yaml:53:3: and 60 more from here on");
  });
});

describe("the name of a tool", () => {
  test.for([
    ["_private", "does not start with a letter or digit"],
    ["__proto__", "does not start with a letter or digit"],
    ["-rf", "does not start with a letter or digit"],
    [".hidden", "does not start with a letter or digit"],
    ["a..b", 'contains ".."'],
    ["a/b", "has characters other than A-Z a-z 0-9 . _ -"],
    ["a>", "has characters other than A-Z a-z 0-9 . _ -"],
    ["*", "has characters other than A-Z a-z 0-9 . _ -"],
    ["größe", "has characters other than A-Z a-z 0-9 . _ -"],
    ["a\nb", "has characters other than A-Z a-z 0-9 . _ -"],
    ["a\n", "has characters other than A-Z a-z 0-9 . _ -"],
    ["", "is empty"],
    ["x".repeat(101), "is longer than 100 bytes"],
  ] as const)("may not be %j", ([name, problem]) => {
    const shown = JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);
    expect(problemsOf(textOf(JSON.stringify(name)))).toEqual([
      `m.yaml:3:3: tool ${shown}: the name ${problem}`,
    ]);
  });

  const nearlyName = fc.string({ unit: fc.constantFrom(..."aZ09._-/*>#\n ü"), maxLength: 120 });

  propertyTest.prop([fc.oneof(nearlyName, fc.stringMatching(/^[a-z][A-Za-z0-9_.-]{0,110}$/))])(
    "that is accepted is one level of a topic that fits every broker",
    (name) => {
      if (!isAccepted(name)) return;
      const topic = invokeTopic("n".repeat(maxNamespaceBytes), name);
      expect(topic.split("/").at(-1)).toBe(name);
      expect(Buffer.byteLength(topic)).toBeLessThanOrEqual(maxTopicBytes);
      expect(name).not.toMatch(/[\s*>#/\p{Cc}]/u);
    },
  );

  propertyTest.prop([
    fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/).filter((name) => !name.includes("..")),
  ])("is accepted when it is made of the allowed characters", (name) => {
    expect(isAccepted(name)).toBe(true);
  });

  function isAccepted(name: string): boolean {
    try {
      return parse(textOf(JSON.stringify(name))).manifest.tools.has(name);
    } catch (error) {
      expect(error).toBeInstanceOf(ManifestError);
      return false;
    }
  }
});

describe("any text", () => {
  const words = [
    "version: 1",
    "tools:",
    " a:",
    "  module: m",
    "  <<: *b",
    "&b",
    "[",
    "{",
    "}",
    "?",
    "!x",
    "|",
    ">",
    '"',
    "\t",
    "---",
    "%YAML 1.1",
    "\u0000",
    ": ",
    "- ",
  ];

  propertyTest.prop([
    fc.array(fc.oneof(fc.constantFrom(...words, "\n"), fc.string({ maxLength: 5 })), {
      maxLength: 30,
    }),
  ])("is a manifest or refused with places in it", (parts) => {
    const text = parts.join("");
    const lines = text.split("\n").length;
    try {
      parse(text);
    } catch (error) {
      expect(error).toBeInstanceOf(ManifestError);
      const { problems } = error as ManifestError;
      expect(problems.length).toBeGreaterThan(0);
      for (const { line, column } of problems) {
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(lines);
        expect(column).toBeGreaterThanOrEqual(1);
      }
    }
  });
});

describe("what a tool has in place of its profile's, or of the host,", () => {
  const parsed = (fields: string) => () =>
    parse(
      `version: 1\ntools:\n  x:\n    module: m\n    function: f\n    ${fields}\n`,
    ).manifest.tools.get("x");

  test("arrives in the worker's own units", () => {
    const fields =
      "{limits: {memory_mb: 8192, cpu_seconds: 5, status_kb: 2, files:}, network: none, isolate: true, devices: [/dev/nvidia0, /dev/dri/renderD128, /dev/nvidia0], mounts: [{source: /data/models}, {source: /srv/x y, target: /opt/x}]}";
    const text = `version: 1\ntools:\n  x:\n    <<: ${fields}\n    module: m\n    function: f\n`;
    expect(parse(text).manifest.tools.get("x")).toEqual(
      tool("x", {
        module: "m",
        callable: { kind: "function", name: "f" },
        limits: { memoryBytes: 8192 * 1024 * 1024, cpuSeconds: 5, statusBytes: 2048 },
        network: "none",
        isolate: true,
        mounts: [
          { source: "/data/models", target: "/data/models" },
          { source: "/srv/x y", target: "/opt/x" },
        ],
        devices: ["/dev/nvidia0", "/dev/dri/renderD128"],
      }),
    );
  });

  test("is nothing where nothing is said", () => {
    const empty = "{limits:, network:, isolate:, mounts:, devices:}";
    const text = `version: 1\ntools:\n  x:\n    <<: ${empty}\n    module: m\n    function: f\n`;
    const [said, unsaid] = [parse(text), parse("version: 1\ntools: {x: {module: m, function: f}}")];
    expect(said.manifest.tools).toEqual(unsaid.manifest.tools);
  });

  const aPath = "an absolute path without . and .. in it, such as /data/models, other than /";
  const aDevice = "the path of a device below /dev, such as /dev/nvidia0";
  test.for<[string, string]>([
    ["limits: 5", "6:13: limits: expected a map of limits, found 5"],
    [
      "limits: {memory_mb: 15}",
      "6:25: limits.memory_mb: expected a whole number, 16 to 1048576, found 15",
    ],
    [
      "limits: {memory: 512}",
      "6:14: limits.memory: unknown key; the keys are memory_mb, cpu_seconds",
    ],
    [
      "network: all",
      '6:14: network: expected one of none, public, host, or a map with "allow" or "public", found "all"',
    ],
    [
      "network: {allow: [{host: a.b, ports: 443}]}",
      "6:42: network.allow[0].ports: expected a list of ports, 1 to 65535 without 53, 3128, found 443",
    ],
    [
      "network: {allow: [a.b, {host: 2130706433}]}",
      "6:35: network.allow[1].host: expected a host with ports, such as api.example.com:443, found 2130706433",
    ],
    [
      "network: {allow: [443]}",
      "6:23: network.allow[0]: expected a host with ports, such as api.example.com:443, or a map of a rule, found 443",
    ],
    [
      'network: {allow: ["https://api.example.com"]}',
      "6:23: network.allow[0]: expected a host with ports, such as api.example.com:443, found a URL",
    ],
    ["isolate: 1", "6:14: isolate: expected true or false, found 1"],
    [
      "mounts: /data",
      '6:13: mounts: expected a list of at most 16 maps of "source" and "target", found "/data"',
    ],
    ["mounts: [/data]", '6:14: mounts[0]: expected a map of "source" and "target", found "/data"'],
    ["mounts: [{target: /data}]", `mounts[0].source: required: ${aPath}`],
    ["mounts: [{source: data}]", `6:23: mounts[0].source: expected ${aPath}, found "data"`],
    ["mounts: [{source: /a/../b}]", `mounts[0].source: expected ${aPath}, found "/a/../b"`],
    ["mounts: [{source: /a/}]", `mounts[0].source: expected ${aPath}, found "/a/"`],
    ["mounts: [{source: /}]", `mounts[0].source: expected ${aPath}, found "/"`],
    ['mounts: [{source: "/a\\nb"}]', `mounts[0].source: expected ${aPath}, found "/a\\nb"`],
    ["mounts: [{source: /a, target: .}]", `mounts[0].target: expected ${aPath}, found "."`],
    [
      "mounts: [{source: /a, mode: rw}]",
      "6:27: mounts[0].mode: unknown key; the keys are source, target",
    ],
    [
      "mounts: [{source: /a, target: /b}, {source: /c, target: /b/d}]",
      'mounts[1].target: "/b/d" overlaps "/b"',
    ],
    [
      "devices: /dev/nvidia0",
      'devices: expected a list of at most 16 paths of devices, found "/dev/nvidia0"',
    ],
    ["devices: [/data/nvidia0]", `6:15: devices[0]: expected ${aDevice}, found "/data/nvidia0"`],
    ["devices: [/dev/../etc]", `devices[0]: expected ${aDevice}, found "/dev/../etc"`],
    ["devices: [/dev]", `devices[0]: expected ${aDevice}, found "/dev"`],
    ["devices: [/dev/tty]", 'devices[0]: "/dev/tty" is refused: the sandbox has one of its own'],
    [
      "devices: [/dev/pts/0]",
      'devices[0]: "/dev/pts/0" is refused: the sandbox has one of its own',
    ],
  ])("is refused with its place: %s", ([fields, problem]) => {
    expect(parsed(fields)).toThrow(problem.replace(/^(\d+:\d+): /, 'm.yaml:$1: tool "x": '));
  });

  test.each([
    ...[
      "/sandbox/work/x",
      "/sandbox",
      "/tools",
      "/node_modules",
      "/tools/python/y",
      "/usr/share/x",
      "/lib64",
      "/bin",
    ],
    ...["/proc/1", "/dev", "/dev/sda", "/etc/passwd", "/run/x", "/sys", "/tmp", "/tmp/x"],
  ])("is refused where the sandbox has a directory of its own: %s", (target) => {
    const message = `mounts[0].target: "${target}" is refused: it is, holds, or lies in a directory that the sandbox has of its own`;
    expect(parsed(`mounts: [{source: /data, target: ${target}}]`)).toThrow(message);
    const withoutTarget = message.replace(".target", ".source");
    expect(parsed(`mounts: [{source: ${target}}]`)).toThrow(`${withoutTarget}; give it a "target"`);
  });

  test.each([
    "env: [A=B]",
    "timeout_seconds: x",
    "devices: [/x]",
    "mounts: [{source: x}]",
    "limits: {cpus: 1.5}",
  ])("hides nothing else that is wrong with the tool: %s", (field) => {
    let message = "";
    try {
      parsed(`version: ">=1"\n    ${field}`)();
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message).toContain('version: allowed only together with "package"');
    expect(message).toContain(`tool "x": ${field.split(":")[0]!}`);
  });

  test("is told in full, however much is wrong with the mounts of one tool", () => {
    const mounts = [
      "{source: /x, target: /usr/x}",
      "{source: rel}",
      "{source: rel, target: /etc/x}",
      "{source: /y, target: /opt/y, mode: rw}",
      "5",
      "{source: /opt/y/z, target: }",
    ];
    let message = "";
    try {
      parsed(`mounts: [${mounts.join(", ")}]`)();
    } catch (error) {
      ({ message } = error as Error);
    }
    const told = message.split("\n").map((line) => line.split(": ").slice(2, 4).join(": "));
    expect(told).toEqual([
      'mounts[0].target: "/usr/x" is refused',
      `mounts[1].source: expected ${aPath}, found "rel"`,
      `mounts[2].source: expected ${aPath}, found "rel"`,
      'mounts[2].target: "/etc/x" is refused',
      "mounts[3].mode: unknown key; the keys are source, target",
      'mounts[4]: expected a map of "source" and "target", found 5',
      'mounts[5].source: "/opt/y/z" overlaps "/opt/y"; give it a "target"',
    ]);
  });

  test("is bounded in number", () => {
    const mounts = Array.from({ length: 17 }, (_, i) => ({ source: `/data/${i}` }));
    expect(parsed(`mounts: ${JSON.stringify(mounts)}`)).toThrow(
      /mounts: expected a list of at most 16/,
    );
    const devices = mounts.map((_, i) => `/dev/d${i}`);
    expect(parsed(`devices: ${JSON.stringify(devices)}`)).toThrow(
      /devices: expected a list of at most 16/,
    );
  });
});
