/** The page's places, as the fragment of its address names them. */

export type Route =
  | { readonly page: "tools" | "calls" | "charts" | "worker" | "unknown" }
  /** `again` is the id of a call whose arguments fill the form. */
  | { readonly page: "tool"; readonly name: string; readonly again: string | null }
  | { readonly page: "call"; readonly id: string };

const plainPages = ["tools", "calls", "charts", "worker"] as const;

/** The route of a fragment with its `#`; tools are the first page, also of a link with a token. */
export function parseRoute(fragment: string): Route {
  if (tokenOf(fragment) !== undefined) return { page: "tools" };
  const [path = "", query = ""] = fragment.replace(/^#?\/?/, "").split("?");
  const [first = "", second, ...rest] = path.split("/");
  if (rest.length > 0) return { page: "unknown" };
  if (second === undefined || second === "") {
    const page = first === "" ? "tools" : plainPages.find((known) => known === first);
    return { page: page ?? "unknown" };
  }
  const name = decode(second);
  if (name === undefined) return { page: "unknown" };
  if (first === "calls") return { page: "call", id: name };
  if (first !== "tools") return { page: "unknown" };
  return { page: "tool", name, again: new URLSearchParams(query).get("again") };
}

/** The address of a tool's page. */
export function toolAddress(name: string, again?: string): string {
  const query = again === undefined ? "" : `?again=${encodeURIComponent(again)}`;
  return `#/tools/${encodeURIComponent(name)}${query}`;
}

/** The address of a call's page. */
export function callAddress(id: string): string {
  return `#/calls/${encodeURIComponent(id)}`;
}

/** The token that a link to the console carries; undefined for other fragments. */
export function tokenOf(fragment: string): string | undefined {
  const token = new URLSearchParams(fragment.replace(/^#/, "")).get("token");
  return fragment.startsWith("#token=") && token !== null && token !== "" ? token : undefined;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
