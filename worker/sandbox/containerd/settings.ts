/** Settings of the containerd and Kata backends alone. */
export interface ContainerdSettings {
  /** containerd's client (`SANDBOX_CTR_BIN`). */
  readonly ctrBin: string;
  /** containerd's socket (`SANDBOX_CONTAINERD_ADDRESS`). */
  readonly address: string;
}

/** Settings of the Kata backend. */
export interface KataSettings extends ContainerdSettings {
  /** containerd's name of the runtime (`SANDBOX_KATA_RUNTIME`). */
  readonly runtime: string;
}
