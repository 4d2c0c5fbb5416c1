/**
 * A bubblewrap for `SANDBOX_BWRAP_BIN` whose sandboxes have a hole, to see that attacks find it.
 */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";

/** A hole. */
export interface Weakness {
  /** Options before all others: mounts that later ones leave visible. */
  readonly first?: readonly string[];
  /** Options after all others: they take back what was asked for. */
  readonly last?: readonly string[];
  /** Shell code right before bubblewrap is started. */
  readonly shell?: string;
  /** A script of sed(1) for the options that come through the descriptor, one per line. */
  readonly edit?: string;
}

/**
 * Writes the program. Sandboxes without tools, by which a worker finds out at its start whether
 * there are holes, are made as usual.
 *
 * @param directory one that sandboxes' users can reach; its owner removes it
 */
export async function weakBubblewrap(directory: string, weakness: Weakness): Promise<string> {
  const { first = [], last = [], shell = "", edit = "" } = weakness;
  const path = join(directory, "bwrap");
  const edited = join(directory, "edited");
  await mkdir(edited, { recursive: true });
  await chmod(edited, 0o777);
  await writeFile(
    path,
    `#!/bin/bash
[[ "$*" = *"--args 3 "* ]] || exec /usr/bin/bwrap "$@"
options=${edited}/$$
cat <&3 > $options
if ! grep -q ${insidePaths.pythonTools} $options; then exec /usr/bin/bwrap "$@" 3< $options; fi
sed -z -i '${edit}' $options
until [ "$1" = -- ]; do own+=("$1"); shift; done
${shell}
exec /usr/bin/bwrap ${first.join(" ")} "\${own[@]}" ${last.join(" ")} "$@" 3< $options
`,
  );
  await chmod(path, 0o755);
  return path;
}
