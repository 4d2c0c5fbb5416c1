/**
 * Manifest and tools in ConfigMaps: what the kubelet exchanges under a running worker.
 */
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { invokeTopic } from "../../../../worker/protocol/topics.ts";
import { patience } from "../../../support/patience.ts";
import {
  manifestText,
  namespace,
  reachableDirectory,
  startRig,
} from "../../../support/workers/rig.ts";

/** A volume of a ConfigMap: files are links through `..data`, a link that is exchanged. */
class Volume {
  readonly directory: string;
  #data: string | undefined;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async mount(base: string, name: string, files: Record<string, string>): Promise<Volume> {
    const directory = join(base, name);
    await mkdir(directory);
    const volume = new Volume(directory);
    await volume.exchange(files);
    for (const file of Object.keys(files))
      await symlink(join("..data", file), join(directory, file));
    return volume;
  }

  /** As the kubelet: new directory, new link, exchange, and removal of the old directory. */
  async exchange(files: Record<string, string>): Promise<void> {
    const data = await mkdtemp(join(this.directory, "..2026_"));
    // A sandbox's own user reads it.
    await chmod(data, 0o755);
    for (const [file, text] of Object.entries(files)) await writeFile(join(data, file), text);
    await symlink(basename(data), join(this.directory, "..data_tmp"));
    await rename(join(this.directory, "..data_tmp"), join(this.directory, "..data"));
    if (this.#data !== undefined) await rm(this.#data, { recursive: true });
    this.#data = data;
  }
}

const says = (word: string) => `def say() -> dict:\n    return {"said": "${word}"}\n`;
const tool = { module: "words", function: "say" };

test(
  "a worker follows the exchanges of ConfigMaps for manifest and tools",
  { tags: "full" },
  async () => {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const manifest = await Volume.mount(base, "manifest", {
      "manifest.yaml": manifestText({ say: tool }),
    });
    const tools = await Volume.mount(base, "python", { "words.py": says("first") });
    await using rig = await startRig({
      tools: {},
      environment: {
        MANIFEST_PATH: join(manifest.directory, "manifest.yaml"),
        TOOLS_PYTHON_DIR: tools.directory,
      },
    });
    expect(await rig.call("say")).toMatchObject({ toolResult: { said: "first" } });

    await tools.exchange({ "words.py": says("second") });
    expect(await rig.call("say")).toMatchObject({ toolResult: { said: "second" } });

    await manifest.exchange({ "manifest.yaml": manifestText({ say: tool, again: tool }) });
    const topics = () => rig.broker.subscriptions.flatMap(({ patterns }) => [...patterns]);
    await vi.waitFor(() => expect(topics()).toContain(invokeTopic(namespace, "again")), patience);
    expect(await rig.call("again")).toMatchObject({ toolResult: { said: "second" } });

    await manifest.exchange({ "manifest.yaml": "version: 1\ntools: [" });
    await vi.waitFor(
      () => expect(rig.logLines.join("\n")).toContain("manifest.unusable"),
      patience,
    );
    expect(await rig.call("again")).toMatchObject({ kind: "success" });
  },
);
