/**
 * Errors as an S3 server answers them: Amazon S3 API Reference, "Error responses".
 */

/** An answer that is an error. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string = code) {
    super(message);
    this.name = "S3Error";
    this.status = status;
    this.code = code;
  }
}

/** Text inside an element. */
export function escapeXml(text: string): string {
  const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  return text.replace(/[&<>]/g, (character) => entities[character] ?? character);
}
