/* The custom functions of the add-in. A cell asks here; what cells ask within a few milliseconds goes to the server in
   one request. Equal calls that are under way share one answer, and answers are kept for a while, as long as the
   server's data stay the same. Written for any list of functions: the server appends it (SizingFunctions.associate). */
"use strict";

const SizingFunctions = (() => {
  const WAIT_MS = 15;
  const MOST = { batch: 500, body: 900000 }; // calls and bytes of a request, where the key's own limits are not less
  const AROUND = '{"calls":[]}'.length;
  const TIMEOUT_MS = 30000;
  const LIMITS_TIMEOUT_MS = 5000;
  const RETRY_MS = 400;
  const KEEP_MS = 60000;
  const MOST_KEPT = 20000;
  const KEY_NAME = "sizing-xlsx.key";

  const SIGN_IN = "Sign in: Home, GPU functions, and enter your API key";
  const DOWN = "The sizing server cannot be reached; try again later";
  const BUSY = "The sizing server is busy; recalculate in a moment";

  let waiting = [];
  let timer = null;
  let data = "";
  let limits = null; // a promise of those of the key, once asked
  const underWay = new Map();
  const kept = new Map();

  const storageName = () => {
    const partition = typeof Office !== "undefined" && Office.context && Office.context.partitionKey;
    return (partition || "") + KEY_NAME;
  };

  const key = () => localStorage.getItem(storageName()) || "";

  const signIn = (text) => {
    if (text) localStorage.setItem(storageName(), text);
    else localStorage.removeItem(storageName());
    kept.clear();
    limits = null;
  };

  const fault = (code, message) => {
    const known = CustomFunctions.ErrorCode;
    return new CustomFunctions.Error(code === "#VALUE!" ? known.invalidValue : known.notAvailable, message);
  };

  const cell = (value) => {
    if (value === undefined || value === "") return null;
    if (Array.isArray(value)) return value.map((row) => (Array.isArray(row) ? row.map(cell) : [cell(row)]));
    if (typeof value === "string") return value.replace(/\p{Surrogate}/gu, "\ufffd"); // half a character is no JSON
    if (typeof value === "number" && !Number.isFinite(value)) return null;
    if (value !== null && typeof value === "object") return "basicValue" in value ? cell(value.basicValue) : cell(String(value));
    return value;
  };

  const shown = (value) => (Array.isArray(value) ? value.map((row) => row.map((each) => each ?? "")) : value);

  /** The value of one call, as a promise. */
  const call = (name, given) => {
    const values = given.map(cell);
    while (values.length && values[values.length - 1] === null) values.pop();
    const text = JSON.stringify({ function: name, arguments: values });
    const known = kept.get(text);
    if (known && known.until > Date.now()) return settled(known.answer);
    if (!underWay.has(text)) {
      underWay.set(text, new Promise((resolve, reject) => waiting.push({ text, resolve, reject })));
      if (timer === null) timer = setTimeout(sendAll, WAIT_MS);
    }
    return underWay.get(text);
  };

  const settled = (answer) =>
    answer.error ? Promise.reject(fault(answer.error, answer.message)) : Promise.resolve(shown(answer.value));

  const sendAll = async () => {
    timer = null;
    const all = waiting;
    waiting = [];
    const asked = (limits ??= limitsOfKey());
    const told = await asked;
    if (!told && limits === asked) limits = null; // asked anew the next time
    const least = (name) => Math.min(told?.[name] || MOST[name], MOST[name]);
    parted(all, { batch: least("batch"), body: least("body") }).forEach(answerAll);
  };

  /** The limits of the key, as the server tells them; null where it does not. */
  const limitsOfKey = async () => {
    const secret = key();
    const reply = secret ? await once("v1/me", { method: "GET" }, secret, LIMITS_TIMEOUT_MS) : null;
    return reply && reply.ok ? reply.json().then((me) => me.limits, () => null) : null;
  };

  /** Calls in parts, each of which a request may hold. */
  const parted = (calls, most) => {
    const parts = [];
    let bytes = 0;
    for (const each of calls) {
      const size = new TextEncoder().encode(each.text).length + 1; // a comma
      const last = parts[parts.length - 1];
      if (last && last.length < most.batch && bytes + size <= most.body) {
        last.push(each);
        bytes += size;
      } else {
        parts.push([each]);
        bytes = AROUND + size;
      }
    }
    return parts;
  };

  const answerAll = async (batch) => {
    let answers;
    try {
      answers = await ask(`{"calls":[${batch.map((each) => each.text).join(",")}]}`);
    } catch (error) {
      if (error.tooMuch && batch.length > 1) { // the key's limits are others now
        limits = null;
        const half = Math.ceil(batch.length / 2);
        await Promise.all([batch.slice(0, half), batch.slice(half)].map(answerAll));
        return;
      }
      answers = batch.map(() => ({ error: error.code || "#N/A", message: error.words || DOWN, passing: true }));
    }
    batch.forEach((each, at) => {
      const answer = answers[at] || { error: "#N/A", message: DOWN, passing: true };
      underWay.delete(each.text);
      if (!answer.passing) keep(each.text, answer);
      settled(answer).then(each.resolve, each.reject);
    });
  };

  const keep = (text, answer) => {
    kept.delete(text);
    kept.set(text, { answer, until: Date.now() + KEEP_MS });
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  };

  const refusal = (words, code) => Object.assign(new Error(words), { words, code });

  const ask = async (body) => {
    const secret = key();
    if (!secret) throw refusal(SIGN_IN);
    const request = { method: "POST", body };
    let reply = await once("v1/calls", request, secret, TIMEOUT_MS);
    if (reply === null || reply.status === 429 || reply.status >= 500) {
      const asked = reply ? Number(reply.headers.get("Retry-After")) * 1000 : 0;
      await new Promise((done) => setTimeout(done, Math.min(asked || 0, 5000) + RETRY_MS * (0.5 + Math.random())));
      reply = await once("v1/calls", request, secret, TIMEOUT_MS);
    }
    if (reply === null) throw refusal(DOWN);
    if (reply.status === 401) throw refusal(SIGN_IN);
    if (reply.status === 429 || reply.status === 503) throw refusal(BUSY);
    if (reply.status === 413 || reply.status === 422) {
      throw Object.assign(refusal((await reply.json()).error, "#VALUE!"), { tooMuch: reply.status === 413 });
    }
    if (!reply.ok) throw refusal(DOWN);
    const content = await reply.json();
    if (content.data !== data) {
      kept.clear();
      data = content.data;
    }
    return content.answers;
  };

  const once = async (address, request, secret, milliseconds) => {
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort(), milliseconds);
    try {
      return await fetch(address, {
        ...request,
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${secret}` },
        signal: stop.signal,
        credentials: "omit",
        cache: "no-store",
      });
    } catch {
      return null;
    } finally {
      clearTimeout(late);
    }
  };

  /** What Excel adds after the arguments: where the cell is. It is no cell's value, and is not sent. */
  const isInvocation = (value) =>
    value !== null && typeof value === "object" && !Array.isArray(value) && !("basicValue" in value);

  /** Tell Excel of the functions: id -> [name, number of arguments]. */
  const associate = (functions) => {
    for (const [id, [name, count]] of Object.entries(functions)) {
      CustomFunctions.associate(id, (...given) => {
        if (isInvocation(given[given.length - 1])) given.pop();
        return call(name, given.slice(0, count));
      });
    }
  };

  return { associate, call, key, signIn };
})();
