/**
 * The report of `str-worker doctor`: checks of this host as a table and as JSON.
 */
import {
  type CheckName,
  type HostCheck,
  type HostExamination,
  requiredChecks,
  reportedChecks,
  unmetChecks,
} from "../sandbox/host-check.ts";

/** Columns of a line: terminals have at least 80, log viewers more. */
const lineWidth = 100;
/** Marks checks that are not required. */
const extraMark = "*";

/** Results of the checks, and the required minimum. */
export interface Diagnosis extends HostExamination {
  readonly minimum: readonly CheckName[];
}

/** Whether a worker with this minimum starts on this host. */
export function isFit({ checks, minimum }: Diagnosis): boolean {
  return unmetChecks(checks, minimum).length === 0;
}

/** The diagnosis as JSON; docs/doctor.md promises its form. */
export function diagnosisJson(diagnosis: Diagnosis): string {
  const { technology, checks, minimum } = diagnosis;
  const body = {
    ok: isFit(diagnosis),
    sandbox: technology,
    minimum: requiredChecks(minimum),
    checks: reportedChecks(checks, minimum),
  };
  return JSON.stringify(body, undefined, 2);
}

/** The diagnosis as a table: state, check, finding, and the remedy below it. */
export function diagnosisTable(diagnosis: Diagnosis): string {
  const { technology, checks } = diagnosis;
  const required = requiredChecks(diagnosis.minimum);
  const label = ({ name }: HostCheck): string =>
    required.includes(name) ? name : `${name} ${extraMark}`;
  const stateWidth = widest(checks.map(({ state }) => state));
  const labelWidth = widest(checks.map(label));
  const rows = checks.flatMap((check) => {
    const head = `${check.state.padEnd(stateWidth)}  ${label(check).padEnd(labelWidth)}  `;
    const texts = [check.finding, ...(check.remedy === undefined ? [] : [`-> ${check.remedy}`])];
    const lines = texts.flatMap((text) => wrapped(text, lineWidth - head.length));
    return lines.map((line, index) => (index === 0 ? head : " ".repeat(head.length)) + line);
  });
  const extras = checks.some(({ name }) => !required.includes(name))
    ? [`${extraMark} not asked for by SANDBOX_MINIMUM`]
    : [];
  return [technology, "", ...rows, "", ...extras, ...conclusion(diagnosis)].join("\n");
}

function conclusion({ checks, minimum }: Diagnosis): readonly string[] {
  const unmet = unmetChecks(checks, minimum).map(({ name }) => name);
  if (unmet.length === 0) return ["This host holds what SANDBOX_MINIMUM asks for."];
  const names = unmet.join(", ");
  const text = `A worker does not start here: this host does not hold what is required of it: ${names}`;
  return wrapped(text, lineWidth);
}

function widest(texts: readonly string[]): number {
  return Math.max(...texts.map(({ length }) => length));
}

/** Breaks a text into lines of at most `width` columns; a longer word gets its own line. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
