/**
 * An init for a worker that is the first process of its container.
 *
 * The kernel gives every process that loses its parent to that first process, which has to wait for
 * it when it ends. Node waits for its own children only, so each sandbox that is killed would stay
 * as a zombie. A shell waits for all.
 */

const shell = "/bin/sh";
const initPid = 1;

/**
 * Runs the command as its child, passes on each signal it gets, and ends as the command did. `wait`
 * comes back early when a signal arrives, and says 127 when the command's ending was told already.
 * A signal before there is a command ends all.
 */
const script = `
command=
told=
pass() {
  told=1
  [ -n "$command" ] || exit "$2"
  kill -s "$1" "$command"
}
trap 'pass HUP 129' HUP
trap 'pass INT 130' INT
trap 'pass QUIT 131' QUIT
trap 'pass USR1 138' USR1
trap 'pass USR2 140' USR2
trap 'pass TERM 143' TERM
"$@" &
command=$!
code=0
while :; do
  told=
  wait "$command"
  ending=$?
  [ "$ending" -eq 127 ] || code=$ending
  [ -n "$told" ] || exit "$code"
done
`;

/**
 * Puts a shell in this process's place that runs the same command line again as its child, when
 * this is a container's first process; does nothing otherwise. To be called before anything is
 * open.
 */
export function runBehindInit(environment: Readonly<Record<string, string | undefined>>): void {
  if (process.pid !== initPid) return;
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const set = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  process.execve?.(shell, [shell, "-c", script, "str-init", ...command], Object.fromEntries(set));
}
