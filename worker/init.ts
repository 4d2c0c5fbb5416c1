/**
 * An init for a worker that is the first process of its container.
 *
 * The kernel reparents orphans to the first process, which has to reap them. Node reaps only its
 * own children, so that each killed sandbox would stay as a zombie. A shell reaps all.
 */

const shell = "/bin/sh";
const initPid = 1;

/**
 * Runs the command as a child, forwards signals, and exits with its code. `wait` returns early at
 * a signal, and 127 after it has reported the exit. A signal before the start ends the shell.
 */
const script = `
command=
forwarded=
forward() {
  forwarded=1
  [ -n "$command" ] || exit "$2"
  kill -s "$1" "$command"
}
trap 'forward HUP 129' HUP
trap 'forward INT 130' INT
trap 'forward QUIT 131' QUIT
trap 'forward USR1 138' USR1
trap 'forward USR2 140' USR2
trap 'forward TERM 143' TERM
"$@" &
command=$!
code=0
while :; do
  forwarded=
  wait "$command"
  exit_code=$?
  [ "$exit_code" -eq 127 ] || code=$exit_code
  [ -n "$forwarded" ] || exit "$code"
done
`;

/**
 * As the first process of a container: replaces this process by a shell that runs the same command
 * line as its child. Call before opening anything.
 */
export function runBehindInit(environment: Readonly<Record<string, string | undefined>>): void {
  if (process.pid !== initPid) return;
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const set = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  process.execve?.(shell, [shell, "-c", script, "str-init", ...command], Object.fromEntries(set));
}
