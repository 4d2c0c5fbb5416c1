/**
 * Keeps the documents for users true: generated tables are current, other repetitions of the code
 * are equal to it, links have targets, and the programs accept the examples.
 */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { Writable } from "node:stream";
import { beforeAll, describe, expect, test } from "vitest";
import { type ArtifactReport, formatArtifacts } from "../../bench/artifacts/table.ts";
import { documentPath, plots, sizingDocumentPath, soakPlotPath } from "../../bench/document.ts";
import { type BesideReport, formatBeside } from "../../bench/beside/table.ts";
import { type GatewayReport, formatGateway } from "../../bench/gateway/table.ts";
import { type NetworkReport, formatNetwork } from "../../bench/network/table.ts";
import type { BenchReport } from "../../bench/report.ts";
import { type RuntimeReport, formatRuntime } from "../../bench/runtime/table.ts";
import { type SizingReport, formatServed, formatSizing } from "../../bench/sizing/table.ts";
import { plotSoak } from "../../bench/soak/plot.ts";
import { type SoakReport, formatSoak } from "../../bench/soak/table.ts";
import { formatReport } from "../../bench/table.ts";
import { decodeAnswer, decodeStatus } from "../../harness/messages.ts";
import { run } from "../../harness/program.ts";
import { Screen } from "../../harness/invoke/screen.ts";
import type { Scaffold } from "../../harness/tool/new/scaffold.ts";
import { expected, testCase } from "../../harness/tool/cases/case-file.ts";
import { nodeScaffold } from "../../harness/tool/new/templates/node.ts";
import { pythonScaffold } from "../../harness/tool/new/templates/python.ts";
import { generatedPages } from "../../scripts/docs/pages.ts";
import { tables } from "../../scripts/docs/tables.ts";
import { readDoctorOptions } from "../../worker/doctor/command-line.ts";
import { stopGraceMs } from "../../worker/invocation/steps/run-to-exit.ts";
import { statusBurst, statusesPerSecond } from "../../worker/invocation/steps/status-relay.ts";
import { maxHostParts } from "../../worker/manifest/fields/host.ts";
import { parseManifest } from "../../worker/manifest/parse.ts";
import { maxEnvNames, maxTools, toolSchemas } from "../../worker/manifest/schema.ts";
import { maxManifestBytes } from "../../worker/manifest/watch.ts";
import { cancelMethod, encodeCancel } from "../../worker/protocol/messages/cancel.ts";
import { decodeAnnouncement } from "../../worker/protocol/messages/announcement.ts";
import { agentPatienceSeconds } from "../../worker/protocol/limits.ts";
import { decodeRequest } from "../../worker/protocol/messages/request.ts";
import { maxNamespaceBytes, maxToolNameBytes } from "../../worker/protocol/topics.ts";
import {
  processOptions,
  refusedQuestions,
  refusedSettings,
} from "../../worker/sandbox/syscalls/call-options.ts";
import { refusedCalls, unfitCalls, unknownCalls } from "../../worker/sandbox/syscalls/syscalls.ts";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";
import {
  maxOwnProfiles,
  maxProfilesBytes,
  parseProfiles,
  profilesJsonSchema,
} from "../../worker/sandbox/profiles-file.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { isJsonObject } from "../../worker/support/json/json.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const pages = ["README.md", ...globSync("docs/*.md", { cwd: root }).sort()];
/** What users type, from any page. */
const everyPage = pages.map(read).join("\n");

/** The lines between a heading and the next one of any level. */
function section(page: string, heading: string): readonly string[] {
  const lines = read(page).split("\n");
  const start = lines.findIndex(
    (line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading,
  );
  if (start === -1) throw new Error(`${page} has no heading "${heading}"`);
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line));
  return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length);
}

/** The rows of the first table below a heading, without its head. */
function tableOf(page: string, heading: string, title = ""): readonly string[] {
  const tables = section(page, heading)
    .join("\n")
    .matchAll(/^\|.*(?:\n\|.*)*/gm);
  const rows = [...tables].map(([table]) => table).find((table) => table.startsWith(`| ${title}`));
  if (rows === undefined) throw new Error(`${page} has no table ${title} below "${heading}"`);
  return rows.split("\n").slice(2);
}

const cellsOf = (row: string): readonly string[] =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

const firstCells = (rows: readonly string[]): readonly string[] =>
  rows.map((row) => cellsOf(row)[0]!.replaceAll("`", ""));

/** The fenced blocks of a page in one language. */
function blocks(text: string, language: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, block]) => block!,
  );
}

interface ProfileFields {
  readonly required: readonly string[];
  readonly properties: object;
}

const thousands = (value: number): string => value.toLocaleString("en-US");

test("the package of Python tools has the version of package.json", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  expect(read("tool-runner/python/pyproject.toml")).toContain(`\nversion = "${version}"\n`);
});

describe("tables that npm run docs writes", () => {
  const generated = generatedPages();

  test.each(generated)("are as the code has them in $path", ({ text, generated: wanted }) => {
    expect(text).toBe(wanted);
  });

  test("stand in one page each", () => {
    const used = generated.flatMap((page) => page.tables);
    expect(used.toSorted()).toEqual(Object.keys(tables).toSorted());
  });
});

describe("a table has what the code has:", () => {
  test("the fields in docs/profiles.md", () => {
    const { required, properties } = (
      profilesJsonSchema() as { properties: { profiles: { additionalProperties: ProfileFields } } }
    ).properties.profiles.additionalProperties;
    const fields = tableOf("docs/profiles.md", "Fields").map(cellsOf);
    expect(fields.map(([field, isRequired]) => [field, isRequired])).toEqual(
      Object.keys(properties).map((name) => [
        `\`${name}\``,
        required.includes(name) ? "yes" : "no",
      ]),
    );
  });

  test.each([
    ["EPERM", "Refused with `EPERM`", refusedCalls],
    ["ENOSYS", "Answered with `ENOSYS`", unknownCalls],
    ["EINVAL", "Answered with `EINVAL`", unfitCalls],
  ])("the system calls that fail with %s in docs/sandbox.md", (_, title, calls) => {
    const documented = tableOf("docs/sandbox.md", "System calls", title).flatMap((row) =>
      [...cellsOf(row)[1]!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
    );
    expect(documented.sort()).toEqual(Object.keys(calls).sort());
  });

  test("the members of a test case in docs/harness.md", () => {
    const documented = ["Member of a case", "Member of `expect`"].map((title) =>
      firstCells(tableOf("docs/harness.md", "tool test", title)),
    );
    expect(documented).toEqual([Object.keys(testCase.shape), Object.keys(expected.shape)]);
  });

  test("the options of system calls in docs/sandbox.md", () => {
    const namesIn = (cells: readonly string[]) =>
      cells.flatMap((cell) => [...cell.matchAll(/`([A-Z]\w+_\w+)`/g)].map(([, name]) => name!));
    const allowed = tableOf("docs/sandbox.md", "Options of prctl").map((row) => cellsOf(row)[1]!);
    expect(namesIn(allowed).sort()).toEqual(Object.keys(processOptions).sort());
    const refused = tableOf("docs/sandbox.md", "System calls", "Call")
      .map(cellsOf)
      .filter(([call]) => call!.includes("sockopt"))
      .map(([, options]) => options!);
    const options = [...refusedSettings, ...refusedQuestions].flatMap((level) =>
      Object.keys(level.options),
    );
    expect(namesIn(refused).sort()).toEqual(options.sort());
  });

  test("the fields in docs/manifest.md", () => {
    const fields = Object.keys(toolSchemas([...builtInProfiles.keys()]).python.shape);
    expect(firstCells(tableOf("docs/manifest.md", "Fields"))).toEqual(fields);
    const ofExecutables = ["executable", "tool_dir", "resource_limits"];
    expect(firstCells(tableOf("docs/manifest.md", "Executables"))).toEqual(ofExecutables);
    expect(firstCells(tableOf("docs/manifest.md", "Programs"))).toEqual(["languages"]);
  });

  test("the results in docs/benchmarks.md, of a run whose numbers are kept, and its plots", () => {
    const paths = globSync("bench/results/*.json", { cwd: root });
    const {
      calls = [],
      artifacts = [],
      beside = [],
      gateway = [],
      network = [],
      runtime = [],
      soak = [],
      sizing = [],
    } = Object.groupBy(
      paths,
      (path) =>
        /-(artifacts|beside|gateway|network|runtime|soak|sizing)\.json$/.exec(path)?.[1] ?? "calls",
    );
    const text = read(documentPath);
    const shownOf = <Report>(
      ofKind: readonly string[],
      format: (report: Report) => string,
    ): readonly Report[] =>
      ofKind
        .map((path) => JSON.parse(read(path)) as Report)
        .filter((report) => text.includes(format(report)));
    const shown = shownOf<BenchReport>(calls, formatReport);
    expect(shown).toHaveLength(1);
    expect(shownOf<ArtifactReport>(artifacts, formatArtifacts)).toHaveLength(1);
    expect(shownOf<BesideReport>(beside, formatBeside)).toHaveLength(1);
    expect(shownOf<GatewayReport>(gateway, formatGateway)).toHaveLength(1);
    expect(shownOf<NetworkReport>(network, formatNetwork)).toHaveLength(1);
    expect(shownOf<RuntimeReport>(runtime, formatRuntime)).toHaveLength(1);
    const sizingText = read(sizingDocumentPath);
    const sizings = sizing
      .map((path) => JSON.parse(read(path)) as SizingReport)
      .filter((report) =>
        [formatSizing, formatServed].every((format) => sizingText.includes(format(report))),
      );
    expect(sizings).toHaveLength(1);
    const soaks = shownOf<SoakReport>(soak, formatSoak);
    expect(soaks).toHaveLength(1);
    const drawn = Object.entries(plots).map(([path, plot]) => [path, plot(shown[0]!)] as const);
    for (const [path, svg] of [...drawn, [soakPlotPath, plotSoak(soaks[0]!)] as const]) {
      expect(text).toContain(`(${basename(path)})`);
      expect(read(path)).toBe(svg);
    }
  });

  test("the context in docs/python-tools.md", () => {
    const source = read("tool-runner/python/secure_tool_runtime/context.py");
    const context = /^class ToolContext:$(.*)/ms.exec(source)![1]!;
    const methods = [...context.matchAll(/(?<!@property\n)^ {4}def ([a-z]\w*)\(/gm)]
      .map(([, name]) => name!)
      // For the runner, as its docstring says.
      .filter((name) => name !== "described_outputs");
    const rows = firstCells(tableOf("docs/python-tools.md", "The context"));
    const documented = rows.flatMap((cell) => /^(\w+)\(/.exec(cell)?.[1] ?? []);
    expect(documented).toEqual(methods);
    for (const attribute of ["user_id", "session_id", "app_name", "task_id"]) {
      expect(rows.at(-1)).toContain(attribute);
      expect(context).toContain(`self.${attribute}: str = `);
    }
  });
});

describe("a sentence says the number that the code has:", () => {
  test.for([
    ["docs/manifest.md", `larger than ${thousands(maxManifestBytes)} bytes`],
    ["docs/manifest.md", `more than ${maxTools} tools`],
    ["docs/manifest.md", `at most ${maxEnvNames}.`],
    ["docs/manifest.md", `read-only, at most ${maxHostParts}:`],
    ["docs/manifest.md", `such as a GPU's, at most ${maxHostParts}:`],
    [
      "docs/profiles.md",
      `A file has at most ${maxOwnProfiles} profiles and ${thousands(maxProfilesBytes)} bytes`,
    ],
    ["docs/manifest.md", `at most ${maxToolNameBytes} bytes`],
    ["docs/configuration.md", `at most ${maxNamespaceBytes} bytes`],
    ["docs/protocol.md", `SIGTERM and ${stopGraceMs / 1000} seconds`],
    ["docs/protocol.md", `and ${agentPatienceSeconds} seconds more`],
    [
      "docs/write-a-python-tool.md",
      `The first ${statusBurst} of a call go out immediately, then ${statusesPerSecond} a`,
    ],
  ])("%s: %s", ([page, sentence]) => {
    expect(read(page!).replaceAll("\n", " ")).toContain(sentence);
  });
});

describe("what a page points to is there:", () => {
  test.for(pages)("%s", (page) => {
    // Code is no link.
    const text = read(page)
      .replaceAll(/^```.*?^```$/gms, "")
      .replaceAll(/`[^`\n]*`/g, "");
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
    for (const link of links.filter((target) => !/^https?:/.test(target))) {
      const [file, anchor] = link.split("#");
      const target = file === "" ? page : normalize(join(dirname(page), file!));
      expect({ link, exists: existsSync(join(root, target)) }).toEqual({ link, exists: true });
      if (anchor !== undefined) expect(anchorsOf(target)).toContain(anchor);
    }
  });

  test("and every page is reachable from the README", () => {
    for (const page of pages.slice(1)) expect(read("README.md")).toContain(`(${page})`);
  });
});

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(page: string): readonly string[] {
  return [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe("a command that a page gives exists:", () => {
  const commands = [
    "invoke",
    "dev-broker",
    "smf-broker",
    "fake-s3",
    "fake-gcs",
    "listen",
    "demo",
    "dev",
    "console",
    "tools",
    "agent-yaml",
    "tool run",
    "tool describe",
    "tool new",
    "tool test",
    "tool stubs",
    "tool prompt",
    "program run",
    "network explain",
    "artifact put",
    "artifact get",
    "artifact list",
    "artifact versions",
  ];
  const help = new Map<string, string>();
  const optionsOf = (command: string): readonly string[] =>
    [...help.get(command)!.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)]
      .map(([, option]) => option!)
      .filter((option) => option !== "--help");

  beforeAll(async () => {
    for (const command of commands) help.set(command, await helpOf(command));
  });

  test("npm scripts", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const named = [...everyPage.matchAll(/\bnpm (?:run (\S+?)|(test))(?=[\s`.,)])/g)];
    expect(named.length).toBeGreaterThan(0);
    for (const [text, script, bare] of named) {
      expect({ text, exists: (script ?? bare!) in scripts }).toEqual({ text, exists: true });
    }
  });

  test("programs, that can be started", () => {
    const named = new Set([...everyPage.matchAll(/\bbin\/[\w-]+\.mjs/g)].map(([path]) => path));
    expect([...named].sort()).toEqual(["bin/harness.mjs", "bin/str-worker.mjs"]);
    for (const path of named) expect(statSync(join(root, path)).mode & 0o111).toBe(0o111);
  });

  test("options of the worker", () => {
    const main = read("worker/command-line.ts");
    for (const [, option] of everyPage.matchAll(/bin\/str-worker\.mjs (--[\w-]+)/g)) {
      expect(main).toContain(`case "${option}":`);
    }
  });

  test("options of the doctor", () => {
    const calls = [...everyPage.matchAll(/bin\/str-worker\.mjs doctor(.*)/g)];
    const asked = calls.map(([, rest]) => rest!.split(/[`*#]/)[0]!.split(/\s+/).filter(Boolean));
    expect(asked).toContainEqual(["--attack", "--profile", "restrictive"]);
    for (const options of asked) expect(readDoctorOptions(options)).toBeTypeOf("object");
  });

  test("commands of the harness, with their options", () => {
    const typed = everyPage.replaceAll("\\\n", " ");
    const command = "((?:tool |program |artifact |network )?[a-z][a-z\\d-]*)(.*)";
    const calls = [...typed.matchAll(new RegExp(`bin/harness\\.mjs ${command}`, "g"))];
    expect(new Set(calls.map(([, name]) => name))).toEqual(new Set(commands));
    // Where the package is installed. A sentence may begin like a command.
    const installed = [...typed.matchAll(new RegExp(`(?:^|\`)harness ${command}`, "gm"))];
    calls.push(...installed.filter(([, name]) => help.has(name!)));
    for (const [, command, rest] of calls) {
      const options = [...rest!.split("`")[0]!.matchAll(/(?<=\s)--[\w-]+/g)].map(
        ([option]) => option,
      );
      for (const option of options) expect([...optionsOf(command!), "--help"]).toContain(option);
    }
  });

  test("and docs/harness.md knows every option of every command", () => {
    for (const command of commands) {
      const documented = section("docs/harness.md", command).join("\n");
      for (const option of optionsOf(command)) expect(documented).toContain(`\`${option}\``);
    }
  });
});

async function helpOf(command: string): Promise<string> {
  let text = "";
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const screen = new Screen(stream);
  const { signal } = new AbortController();
  await run([...command.split(" "), "--help"], {
    environment: {},
    out: screen,
    err: screen,
    signal,
    clock: systemClock,
    openInput: () => process.stdin,
    leaveInterrupts: () => ({ [Symbol.dispose]() {} }),
  });
  return text;
}

describe("an example is accepted:", () => {
  test("every profiles file", () => {
    const files = blocks(read("docs/profiles.md"), "yaml");
    expect(files.length).toBeGreaterThan(0);
    for (const text of files) {
      const names = [...parseProfiles(Buffer.from(text), "example").keys()];
      expect(names.length).toBeGreaterThan(builtInProfiles.size);
    }
  });

  test("every manifest, without a warning", () => {
    const manifests = blocks(everyPage, "yaml").filter((text) => /^tools:/m.test(text));
    expect(manifests.length).toBeGreaterThan(2);
    for (const text of manifests) {
      const options = { path: "example", profileNames: [...builtInProfiles.keys()] };
      expect(parseManifest(Buffer.from(text), options).warnings).toEqual([]);
    }
  });

  test("every message of docs/protocol.md, by those who read it", () => {
    const kinds = blocks(read("docs/protocol.md"), "json").map((text) => {
      const message: unknown = JSON.parse(text);
      if (!isJsonObject(message)) return "nothing";
      if (message["method"] === "sam_remote_tool/status") {
        return decodeStatus(Buffer.from(text)) ? "status" : "no status";
      }
      if (message["method"] === cancelMethod) {
        const { task_id: id } = message["params"] as { readonly task_id: string };
        return Buffer.from(encodeCancel(id)).toString() === JSON.stringify(message)
          ? "cancel"
          : "no cancel";
      }
      const announced = decodeAnnouncement(Buffer.from(text));
      if (announced !== undefined) return announced.worker;
      if (!("method" in message)) return decodeAnswer(Buffer.from(text)).kind;
      const address = { replyTo: "reply", statusTo: undefined, sentAtMs: undefined };
      return decodeRequest(message, address, 0).toolName;
    });
    const answers = ["success", "timed-out", "error"];
    expect(kinds).toEqual(["process_file", ...answers, "status", "cancel", "worker-1"]);
  });

  test("the tools of the README, which are those that harness tool new makes, without their comments", () => {
    const readme = read("README.md");
    const made = ({ files: [tool] }: Scaffold): string =>
      tool!.text
        .replaceAll(/^ *""".*"""\n\n?|^\/\*\*[^]*?\*\/\n/gm, "")
        .replaceAll("\n\n\n", "\n\n");
    const [python] = blocks(readme, "python");
    expect(python).toBe(
      made(pythonScaffold("function", "any", { file: "count_words", callable: "count_words" })),
    );
    expect(blocks(read("docs/write-a-python-tool.md"), "python")).toContain(python);
    const node = made(nodeScaffold("any", { file: "count-words", callable: "countWords" }));
    expect(blocks(readme, "ts")).toEqual([node]);
    expect(blocks(read("docs/write-a-typescript-tool.md"), "ts")).toContain(node);
  });
});
