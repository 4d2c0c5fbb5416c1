/**
 * The checksum of Cloud Storage, beside the SDK's own.
 */
import { CRC32C } from "@google-cloud/storage";
import { fc, test as propertyTest } from "../../../support/properties/property.ts";
import { expect, test } from "vitest";
import { Checksum } from "../../../../worker/artifacts/gcs/checksum.ts";

function checksumOf(...chunks: readonly Uint8Array[]): string {
  const checksum = new Checksum();
  for (const chunk of chunks) checksum.update(chunk);
  return checksum.value;
}

propertyTest.prop([fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 })])(
  "is the SDK's, in whatever chunks the bytes come",
  (chunks) => {
    const sdk = new CRC32C();
    sdk.update(Buffer.concat(chunks));
    expect(checksumOf(...chunks)).toBe(sdk.toString());
  },
);

test("is that of RFC 3720, B.4", () => {
  const ascending = Uint8Array.from({ length: 32 }, (_, octet) => octet);
  const octets = Buffer.from(checksumOf(ascending), "base64");
  expect(octets.readUInt32BE()).toBe(0x46dd794e);
});
