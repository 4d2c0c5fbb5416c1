/**
 * What an operator says of a Solace broker.
 */

/**
 * How status messages are sent: confirmed by the broker, or as fast as can be, with some lost when
 * it is busy.
 */
export type StatusDelivery = "persistent" | "direct";

/** Files in PEM form, read anew for every connection. */
export interface SolaceTlsFiles {
  /**
   * File or directory with the certificates that the broker's is checked against; undefined for
   * those that Node brings along.
   */
  readonly trustStorePath: string | undefined;
  /** The worker's own certificate; with it the broker tells by it who the worker is. */
  readonly clientCertPath: string | undefined;
  readonly clientKeyPath: string | undefined;
  readonly clientKeyPassphrase: string | undefined;
}

/** Where the broker is, as whom to log in, and how its queues are made. */
export interface SolaceConfig {
  /** As `parseSolaceHosts` takes it. */
  readonly host: string;
  readonly vpn: string;
  /** Undefined for the user of the certificate or the token; without these, `admin`. */
  readonly username: string | undefined;
  /** Undefined for `admin`. Used without certificate and token only. */
  readonly password: string | undefined;
  /** OAuth access token; with it the broker tells by it who the worker is. */
  readonly oauthToken: string | undefined;
  /** File with such a token, read anew for every connection. */
  readonly oauthTokenFile: string | undefined;
  readonly tls: SolaceTlsFiles;
  readonly statusDelivery: StatusDelivery;
  /**
   * How often the broker hands a call out before it puts it aside, for queues that the worker
   * makes.
   */
  readonly maxDeliveries: number;
}
