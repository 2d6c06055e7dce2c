// The vendor's generator of custom functions' metadata: node metadata.mjs < functions.js -> its metadata and its errors
import { text } from "node:stream/consumers";
import { parseTree } from "custom-functions-metadata/lib/parseTree.js";

const { functions, extras } = parseTree(await text(process.stdin), "functions.js");
console.log(JSON.stringify({ functions, errors: extras.flatMap((extra) => extra.errors) }));
