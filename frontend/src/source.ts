// A page's data with its arrays decoded: from base64 in a report, from binary when live or in a notebook.
import type { Data, Ref } from "./types";

const KINDS = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u8: Uint8Array, i16: Int16Array };
export type Values = Float64Array | Float32Array | Uint32Array | Uint8Array | Int16Array;
const KNOWN = 1;

export class Source {
  private readonly decoded = new Map<number, Values>();

  constructor(
    readonly data: Data,
    private readonly buffers: ArrayBuffer[],
  ) {
    if (data.format !== "globece.page") throw new Error("This is not a page of globece.");
    if (data.version > KNOWN) {
      throw new Error(
        `The data have version ${data.version}, and this page reads up to version ${KNOWN}. Open them with a newer release.`,
      );
    }
  }

  values(ref: Ref): Values {
    let found = this.decoded.get(ref.array);
    if (!found) {
      found = new KINDS[ref.type](this.buffers[ref.array], 0, ref.length);
      this.decoded.set(ref.array, found);
    }
    return found;
  }

  static fromText(text: string): Source {
    const { buffers, ...data } = JSON.parse(text) as Data & { buffers: string[] };
    return new Source(data as Data, buffers.map(fromBase64));
  }

  static fromBinary(bytes: ArrayBuffer): Source {
    const view = new DataView(bytes);
    if (view.byteLength < 8 || view.getUint32(0, false) !== 0x47434531) throw new Error("These bytes are not a page.");
    const length = view.getUint32(4, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length)));
    const { buffers: sizes, ...data } = head as Data & { buffers: number[] };
    let at = 8 + aligned(length);
    const buffers = sizes.map((size) => {
      const part = bytes.slice(at, at + size);
      at += aligned(size);
      return part;
    });
    return new Source(data as Data, buffers);
  }
}

function aligned(size: number): number {
  return Math.ceil(size / 8) * 8;
}

function fromBase64(text: string): ArrayBuffer {
  const bytes = atob(text);
  const out = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) out[i] = bytes.charCodeAt(i);
  return out.buffer;
}
