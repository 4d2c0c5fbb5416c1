/**
 * The lifecycle rules of docs/artifacts.md.
 */
import { z } from "zod";
import { describe, expect, test } from "vitest";
import { lifecycleDocuments } from "../../../support/s3-servers/lifecycle.ts";

/** Cloud Storage JSON API, "Buckets: lifecycle.rule". */
const gcsRules = z.strictObject({
  lifecycle: z.strictObject({
    rule: z
      .array(
        z.strictObject({
          action: z.strictObject({
            type: z.enum(["Delete", "SetStorageClass", "AbortIncompleteMultipartUpload"]),
          }),
          condition: z.strictObject({
            age: z.int().min(0).optional(),
            daysSinceNoncurrentTime: z.int().min(0).optional(),
            matchesPrefix: z.array(z.string()).optional(),
          }),
        }),
      )
      .min(1),
  }),
});

/** Amazon S3 API Reference, "LifecycleRule". */
const s3Rules = z.strictObject({
  Rules: z
    .array(
      z.strictObject({
        ID: z.string().max(255),
        Status: z.enum(["Enabled", "Disabled"]),
        Filter: z.strictObject({ Prefix: z.string() }),
        AbortIncompleteMultipartUpload: z
          .strictObject({ DaysAfterInitiation: z.int().min(1) })
          .optional(),
        Expiration: z
          .union([
            z.strictObject({ Days: z.int().min(1) }),
            z.strictObject({ ExpiredObjectDeleteMarker: z.boolean() }),
          ])
          .optional(),
        NoncurrentVersionExpiration: z.strictObject({ NoncurrentDays: z.int().min(1) }).optional(),
      }),
    )
    .min(1),
});

describe("the lifecycle rules", () => {
  const { s3, gcs } = lifecycleDocuments();

  test("are documents of the kinds that the stores take", () => {
    expect([s3.length, gcs.length]).toEqual([2, 2]);
    for (const each of s3) s3Rules.parse(each);
    for (const each of gcs) gcsRules.parse(each);
  });

  test("fit into one configuration", () => {
    const ids = s3.flatMap((each) => s3Rules.parse(each).Rules.map(({ ID }) => ID));
    expect(new Set(ids).size).toBe(ids.length);
  });
});
