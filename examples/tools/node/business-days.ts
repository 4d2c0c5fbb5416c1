/**
 * An example tool that needs only its arguments, checks them, and refuses what it cannot do.
 */
import { ToolError } from "secure-tool-runtime/tool";

const dayMs = 24 * 60 * 60 * 1_000;
const maxDays = 10_000;

/** Adds business days, Monday to Friday, to a date. */
export function addBusinessDays({
  date,
  days,
}: {
  readonly date: unknown;
  readonly days: unknown;
}): object {
  // Arguments are what the caller's JSON says: a type in the signature is a wish.
  if (typeof days !== "number" || !Number.isInteger(days) || Math.abs(days) > maxDays) {
    throw new ToolError(`"days" must be a whole number between -${maxDays} and ${maxDays}`);
  }
  let day = parseDate(date);
  const step = Math.sign(days) * dayMs;
  for (let left = Math.abs(days); left > 0;) {
    day = new Date(day.getTime() + step);
    if (isBusinessDay(day)) left -= 1;
  }
  return { date: day.toISOString().slice(0, 10), weekday: weekdayOf(day) };
}

function parseDate(date: unknown): Date {
  const parsed = new Date(typeof date === "string" && /^\d{4}-\d\d-\d\d$/.test(date) ? date : NaN);
  if (Number.isNaN(parsed.getTime())) {
    throw new ToolError('"date" must be a date such as "2027-02-26"');
  }
  return parsed;
}

function isBusinessDay(day: Date): boolean {
  return day.getUTCDay() !== 0 && day.getUTCDay() !== 6;
}

function weekdayOf(day: Date): string {
  return day.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
}
