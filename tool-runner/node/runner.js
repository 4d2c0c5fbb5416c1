import fs from "node:fs";

/** @param {string[]} argv */
export async function runCall(argv) {
  const path = argv[0] ?? "";
  const call = JSON.parse(fs.readFileSync(path, "utf8"));
  fs.unlinkSync(path);
  const url = "file://" + `${call.tools_dir}/${call.module}`.split("/").map(encodeURIComponent).join("/");
  const tool = await import(url);
  const returned = await tool[call.function](call.args, {});
  const temporary = `${call.result_file}.${process.pid}`;
  fs.writeFileSync(temporary, JSON.stringify({ result: returned, outputs: {} }), { flag: "wx" });
  fs.renameSync(temporary, call.result_file);
}
