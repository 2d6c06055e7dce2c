// functions.js under Node, with stand-ins for Excel's side and for the server: `node --test functions.test.mjs`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const SCRIPT = readFileSync(new URL("../../sizing_xlsx/server/assets/functions.js", import.meta.url), "utf8");

class ExcelError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** The script in a world of its own. replies: what the server says in turn, a function of the calls or a status.
    limits: of the key, as the server tells them and keeps to; requests are those for calls. */
const world = ({ key = "sx_key", replies = [], limits = { batch: 500, body: 1000000 }, toldLimits = limits } = {}) => {
  const store = new Map(key ? [["sizing-xlsx.key", key]] : []);
  const requests = [];
  const associated = {};
  const data = { hash: "one" };
  const fetch = async (address, options) => {
    if (address === "v1/me") return { ok: Boolean(toldLimits), json: async () => ({ limits: toldLimits }) };
    const { calls } = JSON.parse(options.body);
    requests.push({ address, options, calls });
    const tooMuch = calls.length > limits.batch || Buffer.byteLength(options.body) > limits.body;
    const reply = tooMuch ? 413 : replies.length ? replies.shift() : "answer";
    if (reply === "down") throw new TypeError("no connection");
    const status = typeof reply === "number" ? reply : 200;
    const answers = calls.map(typeof reply === "function" ? reply : (call) => ({ value: call.arguments.join("+") }));
    return {
      ok: status === 200,
      status,
      headers: new Map(),
      json: async () => (status === 200 ? { data: data.hash, answers } : { error: "refused so" }),
    };
  };
  const context = vm.createContext({
    fetch,
    setTimeout,
    clearTimeout,
    AbortController,
    TextEncoder,
    localStorage: {
      getItem: (name) => store.get(name) ?? null,
      setItem: (name, value) => store.set(name, value),
      removeItem: (name) => store.delete(name),
    },
    CustomFunctions: {
      Error: ExcelError,
      ErrorCode: { invalidValue: "#VALUE!", notAvailable: "#N/A" },
      associate: (id, formula) => (associated[id] = formula),
    },
  });
  const SizingFunctions = vm.runInContext(`${SCRIPT}\nSizingFunctions`, context);
  SizingFunctions.associate({ "GPU.FITS": ["GPU_FITS", 4], "GPU.LIST": ["GPU_LIST", 1] });
  return { requests, associated, data, SizingFunctions, fits: (...given) => associated["GPU.FITS"](...given, { address: "A1" }) };
};

const refused = async (promise) => {
  const error = await promise.then(() => null, (reason) => reason);
  assert.ok(error instanceof ExcelError);
  return [error.code, error.message];
};

test("calls of a moment go in one request, equal ones once, without what Excel adds", async () => {
  const { fits, requests } = world();
  assert.deepEqual(await Promise.all([fits("a", "b", 1, null), fits("a", "b", 1, ""), fits("a", "b", 2, undefined)]), [
    "a+b+1", "a+b+1", "a+b+2",
  ]);
  assert.deepEqual(requests.map(({ calls }) => JSON.parse(JSON.stringify(calls))), [[
    { function: "GPU_FITS", arguments: ["a", "b", 1] },
    { function: "GPU_FITS", arguments: ["a", "b", 2] },
  ]]);
  assert.equal(requests[0].address, "v1/calls");
  assert.equal(requests[0].options.headers.Authorization, "Bearer sx_key");
});

test("a call that is under way is shared by one that comes later", async () => {
  let open;
  const gate = new Promise((done) => (open = done));
  const { fits, requests } = world({ replies: [(call) => ({ value: call.arguments[0] })] });
  const first = fits("a");
  await new Promise((done) => setTimeout(done, 5));
  const second = fits("a");
  open(await gate.constructor.resolve());
  assert.deepEqual(await Promise.all([first, second]), ["a", "a"]);
  assert.equal(requests.length, 1);
});

test("many calls are parted into requests of 500", async () => {
  const { fits, requests } = world();
  await Promise.all(Array.from({ length: 1201 }, (_, at) => fits("a", at)));
  assert.deepEqual(requests.map(({ calls }) => calls.length), [500, 500, 201]);
});

for (const [letter, name] of [["x", "long texts"], ["\u6f22", "long texts of three bytes a letter"]]) {
  test(`${name} are parted by size`, async () => {
    const { fits, requests } = world();
    const values = await Promise.all(Array.from({ length: 60 }, (_, at) => fits(letter.repeat(30000), at)));
    assert.deepEqual(values, Array.from({ length: 60 }, (_, at) => `${letter.repeat(30000)}+${at}`));
    const sizes = requests.map(({ options }) => Buffer.byteLength(options.body));
    assert.ok(sizes.length >= 2);
    assert.ok(sizes.every((size) => size <= 900000));
    assert.equal(requests.flatMap(({ calls }) => calls).length, 60);
  });
}

test("requests keep to the limits of the key", async () => {
  const { fits, requests } = world({ limits: { batch: 100, body: 1500 } });
  const values = await Promise.all(Array.from({ length: 300 }, (_, at) => fits("a", at)));
  assert.deepEqual(values, Array.from({ length: 300 }, (_, at) => `a+${at}`));
  assert.ok(requests.every(({ calls }) => calls.length <= 100));
  const sizes = requests.map(({ options }) => Buffer.byteLength(options.body));
  assert.ok(sizes.every((size) => size <= 1500));
  assert.equal(requests.flatMap(({ calls }) => calls).length, 300);
});

test("the limits of a key are asked once, and again after another has signed in", async () => {
  const limits = { batch: 3, body: 1000000 };
  const { fits, requests, SizingFunctions } = world({ limits });
  await Promise.all(Array.from({ length: 6 }, (_, at) => fits("a", at)));
  await Promise.all(Array.from({ length: 6 }, (_, at) => fits("b", at)));
  assert.deepEqual(requests.map(({ calls }) => calls.length), [3, 3, 3, 3]);
  limits.batch = 6;
  SizingFunctions.signIn("sx_other");
  await Promise.all(Array.from({ length: 6 }, (_, at) => fits("c", at)));
  assert.equal(requests.at(-1).calls.length, 6);
});

for (const [toldLimits, name] of [[null, "are not told"], [{ batch: 400, body: 1000000 }, "have become less"]]) {
  test(`where limits ${name}, what is too much is sent in halves`, async () => {
    const { fits, requests } = world({ limits: { batch: 100, body: 1000000 }, toldLimits });
    const values = await Promise.all(Array.from({ length: 300 }, (_, at) => fits("a", at)));
    assert.deepEqual(values, Array.from({ length: 300 }, (_, at) => `a+${at}`));
    assert.deepEqual(requests.map(({ calls }) => calls.length), [300, 150, 150, 75, 75, 75, 75]);
  });
}

test("one call that is too long alone shows the server's sentence, and spoils no other", async () => {
  const { fits } = world({ limits: { batch: 500, body: 500 } });
  const [long, short] = [fits("x".repeat(600)), fits("a")];
  assert.deepEqual(await refused(long), ["#VALUE!", "refused so"]);
  assert.equal(await short, "a");
});

test("answers are kept until the server's data change", async () => {
  const { fits, requests, data } = world();
  await fits("a");
  await fits("a");
  assert.equal(requests.length, 1);
  data.hash = "two";
  await fits("b");
  await fits("a");
  assert.equal(requests.length, 3);
});

test("a call that is refused shows the error and its sentence, and spoils no other", async () => {
  const words = { error: "#N/A", message: "model is 'x'; it is none of the 68 models" };
  const wrong = { error: "#VALUE!", message: "batch_size is -1" };
  const { fits } = world({ replies: [(call) => ({ x: words, y: wrong })[call.arguments[0]] || { value: true }] });
  const [x, y, z] = [fits("x"), fits("y"), fits("z")];
  assert.deepEqual(await refused(x), ["#N/A", words.message]);
  assert.deepEqual(await refused(y), ["#VALUE!", wrong.message]);
  assert.equal(await z, true);
});

test("without a key nothing is sent", async () => {
  const { fits, requests, SizingFunctions } = world({ key: "" });
  assert.match((await refused(fits("a"))).join(" "), /^#N\/A Sign in/);
  assert.equal(requests.length, 0);
  SizingFunctions.signIn("sx_new");
  assert.equal(await fits("a"), "a");
  assert.equal(requests[0].options.headers.Authorization, "Bearer sx_new");
});

test("a key that is refused is not tried again", async () => {
  const { fits, requests } = world({ replies: [401] });
  assert.match((await refused(fits("a"))).join(" "), /^#N\/A Sign in/);
  assert.equal(requests.length, 1);
});

for (const [first, name] of [["down", "a server that is down"], [503, "a busy server"], [429, "a key that is too fast"], [500, "a failure"]]) {
  test(`${name} is asked once more`, async () => {
    const { fits, requests } = world({ replies: [first] });
    assert.equal(await fits("a"), "a");
    assert.equal(requests.length, 2);
  });

  test(`${name} for good gives #N/A, which is not kept`, async () => {
    const { fits, requests } = world({ replies: [first, first] });
    assert.equal((await refused(fits("a")))[0], "#N/A");
    assert.equal(requests.length, 2);
    assert.equal(await fits("a"), "a");
  });
}

test("a request of another form shows the server's sentence", async () => {
  const { fits } = world({ replies: [422] });
  assert.deepEqual(await refused(fits("a")), ["#VALUE!", "refused so"]);
});

test("a table comes as rows, what is unknown as an empty text", async () => {
  const { associated } = world({ replies: [() => ({ value: [["Card", "GB"], ["L4", null]] })] });
  const found = await associated["GPU.LIST"](null, {});
  assert.deepEqual(JSON.parse(JSON.stringify(found)), [["Card", "GB"], ["L4", ""]]);
});

test("half a character is sent as the sign for one that is none, a whole one as it is", async () => {
  const { fits, requests } = world();
  await fits("a\ud83d", [["\ude00b"]], "\ud83d\ude00");
  assert.deepEqual(JSON.parse(requests[0].options.body).calls[0].arguments, ["a\ufffd", [["\ufffdb"]], "\ud83d\ude00"]);
});

test("ranges, entities and numbers that are none arrive as cells", async () => {
  const { fits, requests } = world();
  await fits([["a", ""]], { basicValue: 8, type: "Double" }, NaN, 3);
  assert.deepEqual(JSON.parse(requests[0].options.body).calls[0].arguments, [[["a", null]], 8, null, 3]);
});
