/**
 * Chooses a broker by a URL, or by the name of a kind with the worker's variables. The variables
 * complete a URL as they do in a worker.
 */
import { brokerVariables } from "../../worker/config/broker-variables.ts";
import { type BrokerConfig, openBroker } from "../../worker/broker/open.ts";
import type { BrokerLog } from "../../worker/broker/log.ts";
import type { ReconnectingBroker } from "../../worker/broker/reconnecting.ts";
import { ConfigError, type Environment, readConfig } from "../../worker/config/config.ts";
import { readSecretFiles } from "../../worker/config/secret-files.ts";
import { underOwnNames } from "../../worker/config/variable-aliases.ts";
import { newId } from "../../worker/support/ids.ts";
import { acceptedBrokers, defaultPort } from "../options/defaults.ts";

/** Address of a DevBroker. */
export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

/** A kind of broker, with the mapping from URL to variables. */
interface Kind {
  /** The worker's variable that selects this kind. */
  readonly selector: string;
  /** Schemes of its URLs, with the colon. */
  readonly schemes: readonly string[];
  /** Variables of the URL; undefined for a URL of another kind. */
  read(url: URL): Environment | undefined;
}

const kinds: Readonly<Record<string, Kind>> = {
  dev: {
    selector: "DEV_BROKER_HOST",
    schemes: ["dev:"],
    read(url) {
      if (hasCredentials(url) || /[^/]/.test(url.pathname)) return undefined;
      return {
        DEV_BROKER_HOST: url.hostname.replace(/^\[|\]$/g, ""),
        DEV_BROKER_PORT: url.port || String(defaultPort),
      };
    },
  },
  amqp: {
    selector: "AMQP_URL",
    schemes: ["amqp:", "amqps:"],
    read: (url) => ({ AMQP_URL: url.href }),
  },
  solace: {
    selector: "SOLACE_HOST",
    schemes: ["tcp:", "tcps:", "ws:", "wss:", "smf:", "smfs:"],
    read(url) {
      const vpn = /^\/?([^/]*)$/.exec(url.pathname)?.[1];
      if (vpn === undefined) return undefined;
      return {
        SOLACE_HOST: `${url.protocol}//${url.host}`,
        ...(vpn !== "" && { SOLACE_VPN: decodeURIComponent(vpn) }),
        ...(url.username !== "" && { SOLACE_USERNAME: decodeURIComponent(url.username) }),
        ...(url.password !== "" && { SOLACE_PASSWORD: decodeURIComponent(url.password) }),
      };
    },
  },
};

/** Namespace and variables of a choice. */
export interface ChoiceOptions {
  /** Spelled exactly as the worker's. */
  readonly namespace: string;
  /** The worker's variables, which complete the text; others are ignored. */
  readonly environment: Environment;
}

/** A chosen broker, without a connection. */
export interface BrokerChoice {
  readonly config: BrokerConfig;
  /** Its address for people, without credentials. */
  readonly label: string;
}

/** Parses {@link acceptedBrokers}. Throws ConfigError without the text and its password. */
export function chooseBroker(text: string, given: ChoiceOptions): BrokerChoice {
  const { environment, problems } = readSecretFiles(given.environment);
  if (problems.length > 0) throw new ConfigError(problems);
  const options = { ...given, environment: underOwnNames(environment) };
  const kind = Object.hasOwn(kinds, text) ? kinds[text] : undefined;
  return kind ? fromVariables(text, kind, options) : fromUrl(text, options);
}

function fromVariables(name: string, { selector }: Kind, options: ChoiceOptions): BrokerChoice {
  if (!options.environment[selector]) {
    throw new ConfigError([`broker: ${name} needs ${selector}, which is not set`]);
  }
  const config = readBroker({ [selector]: options.environment[selector] }, options);
  return { config, label: `the broker of ${selector}` };
}

function fromUrl(text: string, options: ChoiceOptions): BrokerChoice {
  const isAddress = /^(?:\[[^\]]+\]|[^:[\]/@?#]+)(?::\d+)?$/.test(text);
  const url = URL.parse(isAddress ? `dev://${text}` : text);
  const selected = url === null ? undefined : variablesOf(url);
  if (url === null || selected === undefined) {
    throw new ConfigError([`broker: what is given is not accepted; accepted: ${acceptedBrokers}`]);
  }
  const label = isAddress ? text : `${url.protocol}//${url.host}${url.pathname}`;
  return { config: readBroker(selected, options), label };
}

function variablesOf(url: URL): Environment | undefined {
  const kind = Object.values(kinds).find(({ schemes }) => schemes.includes(url.protocol));
  if (kind === undefined || url.hostname === "" || url.search !== "" || url.hash !== "") {
    return undefined;
  }
  // A password with a slash that is not escaped would be taken for host and path, and shown.
  if (url.pathname.includes("@")) return undefined;
  try {
    return kind.read(url);
  } catch {
    return undefined; // an escape that is none
  }
}

/** Reads `selected`, completed by broker variables of the environment. */
function readBroker(
  selected: Environment,
  { environment, namespace }: ChoiceOptions,
): BrokerConfig {
  const selectors = Object.values(kinds).map(({ selector }) => selector);
  const others = Object.entries(environment).filter(
    ([name]) => Object.hasOwn(brokerVariables, name) && !selectors.includes(name),
  );
  return readConfig({ ...Object.fromEntries(others), ...selected, SAM_NAMESPACE: namespace })
    .broker;
}

function hasCredentials({ username, password }: URL): boolean {
  return username !== "" || password !== "";
}

/** Client name and retries of a connection. */
export interface ClientBrokerOptions {
  readonly namespace: string;
  /** Prefix of the client's name; the rest is random. */
  readonly name: string;
  /** Attempts per outage, the first connection included; 0 tries for ever. */
  readonly connectRetries: number;
  readonly log: BrokerLog;
}

/** A broker that reconnects by the worker's policy. `connect` opens it. */
export function openClientBroker(
  config: BrokerConfig,
  { namespace, name, connectRetries, log }: ClientBrokerOptions,
): Promise<ReconnectingBroker> {
  return openBroker(
    { ...config, connectRetries },
    { namespace, workerId: `${name}-${newId()}`, log },
  );
}

/** A DevBroker, with one attempt to connect per outage. */
export function openDevBroker(
  address: BrokerAddress,
  who: Pick<ClientBrokerOptions, "namespace" | "name">,
): Promise<ReconnectingBroker> {
  const config = { kind: "dev", ...address, connectRetries: 1, connectRetryDelayMs: 1 } as const;
  return openClientBroker(config, { ...who, connectRetries: 1, log: silentLog });
}

/** A log without output. */
export const silentLog: BrokerLog = { info: () => undefined, warn: () => undefined };
