/**
 * Names that the `.env` of Solace Agent Mesh has for variables of the worker.
 */

/** An environment, as `process.env` is one. An empty variable counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The worker's name by the other one. */
export const variableAliases: ReadonlyMap<string, string> = new Map([
  ["SOLACE_BROKER_URL", "SOLACE_HOST"],
  ["SOLACE_BROKER_VPN", "SOLACE_VPN"],
  ["SOLACE_BROKER_USERNAME", "SOLACE_USERNAME"],
  ["SOLACE_BROKER_PASSWORD", "SOLACE_PASSWORD"],
  ["S3_ENDPOINT_URL", "ARTIFACT_S3_ENDPOINT"],
]);

/** The environment under the worker's own names. Where both names are set, the worker's counts. */
export function underOwnNames(environment: Environment): Environment {
  const others = Object.entries(environment).filter(([name]) => !variableAliases.has(name));
  const translated = aliasesIn(environment).map(
    ([alias, name]) => [name, environment[alias]] as const,
  );
  return Object.fromEntries([...translated, ...others.filter(([, value]) => value !== "")]);
}

/** One line for each variable whose two names say different things. Repeats no value. */
export function aliasProblems(environment: Environment): readonly string[] {
  return aliasesIn(environment)
    .filter(([alias, name]) => environment[name] && environment[name] !== environment[alias])
    .map(([alias, name]) => `${alias}, ${name}: are two names of one variable; set one of them`);
}

/** How the environment spells the worker's name of a variable. */
export function spelledIn(environment: Environment, name: string): string {
  const alias = aliasesIn(environment).find(([, own]) => own === name)?.[0];
  return environment[name] || alias === undefined ? name : alias;
}

function aliasesIn(environment: Environment): readonly (readonly [string, string])[] {
  return [...variableAliases].filter(([alias]) => environment[alias]);
}
