/**
 * The token of the worker's console, for requests of this tab. The browser keeps it for this origin
 * with its port, and sends it nowhere by itself.
 */

const key = "console-token";

/** Null before it is known. */
export function knownToken(): string | null {
  return sessionStorage.getItem(key);
}

/** Null forgets it. */
export function setToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, token);
}

/** The header of each request. */
export function authorization(): { readonly authorization: string } {
  return { authorization: `Bearer ${knownToken() ?? ""}` };
}
