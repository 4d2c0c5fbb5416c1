/**
 * Devices as files of /proc write them.
 */

/**
 * How files of /proc write a device that stat(2) has numbered: Linux has 12 bits for one half, 20
 * for the other.
 */
export function deviceName(device: number): string {
  const major = (device >>> 8) & 0xfff;
  const minor = (device & 0xff) | ((device >>> 12) & 0xf_ff00);
  return [major, minor].map((part) => part.toString(16).padStart(2, "0")).join(":");
}
