/**
 * Where the last load of an artifact ended: the next piece costs no more than its bytes.
 */
import type { ArtifactPiece, PieceRequest } from "./gateway.ts";

interface Load {
  readonly filename: string;
  /** Missing while it runs, and after a failure. */
  end?: { readonly version: number; readonly offset: number };
}

/** The position of the loads of one program. */
export class ReadPosition {
  /** The load that started last: what others leave behind is lost by it. */
  #last: Load | undefined;

  /** Starts a load. `ended` gets what a successful one returned. */
  start(piece: PieceRequest): {
    /** Whether another artifact, or another part, has to be opened. */
    readonly isNew: boolean;
    ended(loaded: ArtifactPiece): void;
  } {
    const isNew = !this.#isNext(piece);
    const { filename, offset } = piece;
    const load: Load = { filename };
    this.#last = load;
    return {
      isNew,
      ended: ({ version, bytes }) => {
        load.end = { version, offset: offset + bytes.byteLength };
      },
    };
  }

  #isNext({ filename, version, offset }: PieceRequest): boolean {
    const { filename: name, end } = this.#last ?? {};
    if (end === undefined || name !== filename || offset === 0) return false;
    return offset === end.offset && (version ?? end.version) === end.version;
  }
}
