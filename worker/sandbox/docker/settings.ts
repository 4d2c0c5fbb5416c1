/**
 * Settings of the docker backend alone.
 */

/** What only docker is opened with. */
export interface DockerSettings {
  /** The socket file of the engine's API (`DOCKER_SOCKET`). */
  readonly dockerSocket: string;
}
