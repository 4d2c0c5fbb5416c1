/** The least a JavaScript tool can be: what is timed is everything around it. */
export async function nothing() {
  return {};
}
