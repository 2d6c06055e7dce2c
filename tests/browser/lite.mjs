// The functions in the Python that xlwings Lite runs: Pyodide, with the files of the wheel and nothing else installed.
// node lite.mjs WHEEL MAIN < calls.json -> one JSON object with what was seen; there is no network
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { loadPyodide } from "pyodide";

const [wheel, main] = process.argv.slice(2);
globalThis.fetch = async (address) => {
  throw new Error(`${address} was asked for`);
};
const beside = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
const asked = await text(process.stdin);
const python = await loadPyodide();
try {
  const site = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(new Uint8Array(readFileSync(wheel)), "zip", { extractDir: site });
  python.FS.writeFile(`${site}/xlwings.py`, beside("xlwings_stand_in.py"));
  python.FS.writeFile("main.py", readFileSync(main, "utf8"));
  python.globals.set("asked", asked);
  console.log(python.runPython(beside("lite_session.py")));
} catch (error) {
  console.error(error.message); // thrown on, Node would show a page of the runtime's own code
  process.exitCode = 1;
}
