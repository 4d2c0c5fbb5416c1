/**
 * Reads OTLP as protobuf: `ExportTraceServiceRequest` of opentelemetry-proto 1.7, the fields that
 * tests compare.
 */

/** A span as a collector gets it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly name: string;
  /** `SpanKind`: 1 internal, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  /** `StatusCode`: 0 unset, 2 error. */
  readonly status: number;
}

/** Fields of a message by number: numbers as bigint, all else as bytes. */
type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

export function spansOf(request: Buffer): readonly ReceivedSpan[] {
  return messages(request, 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1);
    const attributes = resource === undefined ? {} : attributesOf(resource, 1);
    return messages(resourceSpans, 2)
      .flatMap((scopeSpans) => messages(scopeSpans, 2))
      .map((span) => spanOf(span, attributes));
  });
}

function spanOf(bytes: Buffer, resource: ReceivedSpan["resource"]): ReceivedSpan {
  const fields = read(bytes);
  const [status] = messages(bytes, 15);
  return {
    traceId: bytesOf(fields, 1).toString("hex"),
    spanId: bytesOf(fields, 2).toString("hex"),
    parentSpanId: bytesOf(fields, 4).toString("hex"),
    name: bytesOf(fields, 5).toString(),
    kind: Number(numberOf(fields, 6)),
    startNs: numberOf(fields, 7),
    endNs: numberOf(fields, 8),
    attributes: attributesOf(bytes, 9),
    resource,
    status: status === undefined ? 0 : Number(numberOf(read(status), 3)),
  };
}

function attributesOf(bytes: Buffer, field: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(bytes, field).map((pair) => {
      const [value = Buffer.alloc(0)] = messages(pair, 2);
      return [bytesOf(read(pair), 1).toString(), anyValue(read(value))];
    }),
  );
}

function anyValue(fields: Fields): unknown {
  if (fields.has(1)) return bytesOf(fields, 1).toString();
  if (fields.has(2)) return numberOf(fields, 2) !== 0n;
  if (fields.has(3)) return Number(numberOf(fields, 3));
  const double = Buffer.alloc(8);
  double.writeBigUInt64LE(numberOf(fields, 4));
  return double.readDoubleLE();
}

function messages(bytes: Buffer, field: number): readonly Buffer[] {
  return (read(bytes).get(field) ?? []).filter((value) => typeof value !== "bigint");
}

function bytesOf(fields: Fields, field: number): Buffer {
  const value = fields.get(field)?.[0] ?? Buffer.alloc(0);
  if (typeof value === "bigint") throw new Error(`field ${field} is a number`);
  return value;
}

function numberOf(fields: Fields, field: number): bigint {
  const value = fields.get(field)?.[0] ?? 0n;
  if (typeof value !== "bigint") throw new Error(`field ${field} is no number`);
  return value;
}

/** The wire format of protobuf: https://protobuf.dev/programming-guides/encoding/. */
function read(bytes: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const varint = (): bigint => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const key = Number(varint());
    const [field, type] = [key >> 3, key & 7];
    const values = fields.get(field) ?? [];
    fields.set(field, values);
    if (type === 0) values.push(varint());
    else if (type === 1) values.push(take(8).readBigUInt64LE());
    else if (type === 5) values.push(BigInt(take(4).readUInt32LE()));
    else if (type === 2) values.push(take(Number(varint())));
    else throw new Error(`wire type ${type}`);
  }
  return fields;
}
