/** Images inside results: data URLs of formats that browsers decode and that run no code. */
import type { JsonValue } from "../../worker/console/api.ts";
import { isMembers } from "./json.ts";

const imageData = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]+$/;
/** Characters of a data URL. */
const maxLength = 8 * 1024 * 1024;

/** Whether a text is an image that a page may show. */
export function isImageData(text: string): boolean {
  return text.length <= maxLength && imageData.test(text);
}

/** The images of a result: itself, or its members, each with its name. */
export function imagesOf(
  value: JsonValue,
): readonly { readonly name: string | null; readonly source: string }[] {
  if (typeof value === "string") return isImageData(value) ? [{ name: null, source: value }] : [];
  if (!isMembers(value)) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    typeof member === "string" && isImageData(member) ? [{ name, source: member }] : [],
  );
}
