// The add-in in a browser: the pages of a running service, the vendor's runtime as it is, a stand-in for Excel.
// node add_in.mjs URL KEY BROWSER CELLS < asked.json -> one JSON object with what was seen
// asked.json: further cells, of each the function's id and the values of its arguments
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { chromium } from "playwright-core";

const [url, key, executablePath, cells] = process.argv.slice(2);
const resolve = createRequire(import.meta.url).resolve;
const vendor = `${dirname(resolve("@microsoft/office-js/dist/custom-functions-runtime.js"))}/`;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
const told = [];
const requests = [];
page.on("console", (message) => message.type() === "error" && told.push(message.text()));
page.on("pageerror", (error) => told.push(String(error)));
page.on("request", (request) => request.url().endsWith("/v1/calls") && requests.push(request.postDataJSON().calls.length));
// The runtime asks for its own name; nothing else of the page is changed.
await page.route(`${url}/taskpane.html`, async (route) => {
  const response = await route.fetch();
  const body = (await response.text()).replace("hosted/office.js", "hosted/custom-functions-runtime.js");
  await route.fulfill({ response, body });
});
const elsewhere = [];
await page.route(/^https:\/\/(?!localhost)/, (route) => {
  const [, name] = route.request().url().match(/^https:\/\/appsforoffice\.microsoft\.com\/lib\/1\/hosted\/([^?]+)/) || [];
  if (name && existsSync(vendor + name)) return route.fulfill({ path: vendor + name, contentType: "text/javascript" });
  elsewhere.push(route.request().url());
  return route.abort();
});
await page.addInitScript({ path: new URL("excel_stand_in.js", import.meta.url).pathname });
await page.goto(`${url}/taskpane.html`);
await page.locator("#server", { hasText: "answers" }).waitFor();

const calculate = (asked) => page.evaluate((each) => window._richApiNativeBridge.calculate(each), asked);
const fits = (model, batch) => ["GPU.FITS", [model, "H100 SXM5 80GB", batch, 2048]];
const seen = { before: await calculate([fits("Llama-3.1-8B", 1)]) };

await page.fill("#key", key);
await page.click("#sign-in button[type=submit]");
await page.locator("#functions details").nth(10).waitFor();
seen.who = await page.textContent("#who");
seen.functions = await page.locator("#functions summary h3").allTextContents();
await page.fill("#search", "breakdown");
seen.searched = await page.locator("#functions summary h3").allTextContents();
await page.click("#functions summary");
seen.examples = await page.locator("#functions code").allTextContents();
seen.administration = await page.isVisible("#administration");

seen.few = await calculate([
  fits("Llama-3.1-8B", 1),
  fits("no such model", 1),
  fits("Llama-3.1-8B", -1),
  ["GPU.HEADROOM", ["Llama-3.1-8B", "H100 SXM5 80GB", 1, 2048, null, null, null]],
  ["GPU.LIST", ["L40"]],
]);
seen.asked = await calculate(JSON.parse(await text(process.stdin)));
const sheet = Array.from({ length: Number(cells) }, (_, at) => fits("Llama-3.1-8B", at + 1));
requests.length = 0;
let start = Date.now();
const found = await calculate(sheet);
seen.sheet = { ms: Date.now() - start, requests: [...requests], failed: found.filter((each) => each.failed).length };
seen.values = found.map((each) => each.value);
requests.length = 0;
start = Date.now();
await calculate(sheet);
seen.again = { ms: Date.now() - start, requests: [...requests] };
seen.told = told;
seen.elsewhere = elsewhere;
seen.stored = await page.evaluate(() => ({ ...localStorage }));
console.log(JSON.stringify(seen));
await browser.close();
