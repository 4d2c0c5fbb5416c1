/** Settings of the gVisor backend alone. */
export interface GvisorSettings {
  /** gVisor's program (`SANDBOX_RUNSC_BIN`). */
  readonly runscBin: string;
}
