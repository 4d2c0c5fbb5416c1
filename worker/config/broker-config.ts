/**
 * From the values of variables to the broker that is meant.
 */
import type { BrokerValues } from "./broker-variables.ts";
import { type BrokerConfig, type ConnectPatience, isEncryptedSolaceHost } from "../broker/open.ts";

/** Each selects a broker; exactly one of them is set. */
const selectors = ["AMQP_URL", "DEV_BROKER_HOST", "SOLACE_HOST"] as const;

/**
 * What is wrong with the choice of a broker, one line per problem, as {@link ConfigError} wants
 * them.
 */
export function brokerProblems(
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const isSet = (name: string): boolean => environment[name] !== undefined;
  const problems: string[] = [];
  const chosen = selectors.filter(isSet);
  if (chosen.length === 0) {
    problems.push(`${selectors.join(", ")}: none is set; set the one of the broker to connect to`);
  } else if (chosen.length > 1) {
    problems.push(
      `${chosen.join(", ")}: are set together; set the one of the broker to connect to`,
    );
  }
  const pairs = [
    ["AMQP_CERT_FILE", "AMQP_KEY_FILE"],
    ["SOLACE_CLIENT_CERT_PATH", "SOLACE_CLIENT_KEY_PATH"],
  ] as const;
  for (const [certificate, key] of pairs) {
    if (isSet(certificate) !== isSet(key)) {
      problems.push(`${certificate}, ${key}: set both or none`);
    }
  }
  return [...problems, ...solaceLoginProblems(environment)];
}

/** The broker of an environment without {@link brokerProblems}. */
export function brokerConfig(values: BrokerValues): BrokerConfig {
  const patience = {
    connectRetries: values.CONNECT_RETRIES,
    connectRetryDelayMs: values.CONNECT_RETRY_DELAY_MS,
  };
  if (values.AMQP_URL !== undefined) return amqpConfig(values, values.AMQP_URL, patience);
  if (values.SOLACE_HOST !== undefined) return solaceConfig(values, values.SOLACE_HOST);
  const host = values.DEV_BROKER_HOST ?? "";
  return { kind: "dev", host, port: values.DEV_BROKER_PORT, ...patience };
}

/**
 * There is one way to log in, and what proves who the worker is must not be sent where others can
 * read it.
 */
function solaceLoginProblems(
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const proofs = [
    "SOLACE_CLIENT_CERT_PATH",
    "SOLACE_OAUTH_TOKEN",
    "SOLACE_OAUTH_TOKEN_FILE",
  ].filter((name) => environment[name] !== undefined);
  if (proofs.length > 1) return [`${proofs.join(", ")}: set one of them`];
  const host = environment["SOLACE_HOST"];
  if (proofs.length === 0 || host === undefined || isEncryptedSolaceHost(host)) return [];
  return [`${proofs.join()}: needs TLS; let SOLACE_HOST begin with tcps:// or wss://`];
}

function amqpConfig(values: BrokerValues, url: string, patience: ConnectPatience): BrokerConfig {
  return {
    kind: "amqp",
    url,
    tls: {
      caFile: values.AMQP_CA_FILE,
      certFile: values.AMQP_CERT_FILE,
      keyFile: values.AMQP_KEY_FILE,
      keyPassphrase: values.AMQP_KEY_PASSPHRASE,
    },
    exchange: values.AMQP_EXCHANGE,
    maxDeliveries: values.BROKER_MAX_DELIVERIES,
    consumerTimeoutSeconds: values.AMQP_CONSUMER_TIMEOUT_SECONDS,
    ...patience,
  };
}

function solaceConfig(values: BrokerValues, host: string): BrokerConfig {
  return {
    kind: "solace",
    host,
    vpn: values.SOLACE_VPN,
    username: values.SOLACE_USERNAME,
    password: values.SOLACE_PASSWORD,
    oauthToken: values.SOLACE_OAUTH_TOKEN,
    oauthTokenFile: values.SOLACE_OAUTH_TOKEN_FILE,
    tls: {
      trustStorePath: values.SOLACE_TRUST_STORE_PATH,
      clientCertPath: values.SOLACE_CLIENT_CERT_PATH,
      clientKeyPath: values.SOLACE_CLIENT_KEY_PATH,
      clientKeyPassphrase: values.SOLACE_CLIENT_KEY_PASSPHRASE,
    },
    statusDelivery: values.SOLACE_STATUS_DELIVERY,
    maxDeliveries: values.BROKER_MAX_DELIVERIES,
    connectRetries: values.SOLACE_RECONNECT_RETRIES,
    connectRetryDelayMs: values.SOLACE_RECONNECT_DELAY_MS,
  };
}
