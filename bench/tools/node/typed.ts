/** The same in TypeScript, whose types are stripped when it is loaded. */
export async function nothing(_args: object): Promise<object> {
  return {};
}
