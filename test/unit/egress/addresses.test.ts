import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { isOwn, isPublic, isTranslated } from "../../../worker/egress/addresses.ts";

test.each([
  "127.0.0.1",
  "127.64.0.1",
  "0.0.0.0",
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "169.254.169.254",
  // Of Azure's machines.
  "168.63.129.16",
  "100.64.0.1",
  "192.0.2.1",
  "198.18.0.1",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "::1",
  "::",
  "fe80::1",
  "fd00:ec2::254",
  "fc00::1",
  "ff02::1",
  "::ffff:127.0.0.1",
  "::ffff:93.184.215.14",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:db8::1",
])("%s is not public", (address) => {
  expect(isPublic(address)).toBe(false);
});

test.each(["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1111"])(
  "%s is public",
  (address) => {
    expect(isPublic(address)).toBe(true);
  },
);

test("the host's own addresses are its own, public or not", () => {
  const own = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  for (const { address } of own) expect(isOwn(address)).toBe(true);
  expect(isOwn("127.1.2.3")).toBe(true);
  expect(isOwn("1.1.1.1")).toBe(false);
});

test.each(["::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::7f00:1", "64:ff9b::7f00:1", "0.0.0.0"])(
  "%s stands for another address",
  (address) => {
    expect(isTranslated(address)).toBe(true);
  },
);

test.each(["2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"])(
  "%s leads through a tunnel to another address",
  (address) => {
    expect(isTranslated(address)).toBe(true);
  },
);

test.each(["::1", "127.0.0.1", "10.0.0.1", "fd00::1", "2606:4700::1111", "1.1.1.1"])(
  "%s stands for itself",
  (address) => {
    expect(isTranslated(address)).toBe(false);
  },
);
