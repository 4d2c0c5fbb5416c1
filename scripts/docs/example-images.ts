/**
 * The Dockerfiles of examples/image, as docs/containers.md shows them.
 */
import { readFileSync } from "node:fs";

const directory = new URL("../../examples/image/", import.meta.url);

/** The lines of each, in a fence, without comments and with the usual base. */
export const exampleImages: Readonly<Record<string, readonly string[]>> = {
  "examples/image/Dockerfile": fenced("Dockerfile"),
  "examples/image/prepared.Dockerfile": fenced("prepared.Dockerfile"),
};

function fenced(name: string): readonly string[] {
  const text = readFileSync(new URL(name, directory), "utf8");
  const base = /^ARG BASE=(.*)$/m.exec(text)?.[1] ?? "";
  const lines = text.trimEnd().split("\n");
  const shown = lines.filter((line) => !line.startsWith("#") && !line.startsWith("ARG "));
  const resolved = shown.map((line) => line.replace("${BASE}", base));
  return ["```dockerfile", ...resolved, "```"];
}
