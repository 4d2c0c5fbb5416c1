/**
 * What an operator says of a DevBroker.
 */

/** Where it listens. */
export interface DevConfig {
  readonly host: string;
  readonly port: number;
}
