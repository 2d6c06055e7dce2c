/* The task pane: signing in, the functions with their examples, a tenant's own presets. Texts go in as text, never as
   markup. */
"use strict";

(() => {
  const at = (id) => document.getElementById(id);
  let functions = [];

  const element = (name, text, ...children) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  };

  const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

  const asked = async (path, options = {}) => {
    const headers = { Authorization: `Bearer ${SizingFunctions.key()}`, ...(options.headers || {}) };
    const reply = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
    const content = await reply.json();
    if (!reply.ok) throw new Error(content.error);
    return content;
  };

  const health = async () => {
    try {
      const content = await (await fetch("health", { cache: "no-store" })).json();
      at("server").textContent = `The server answers; version ${content.version}.`;
      at("server").className = "";
    } catch {
      at("server").textContent = "The server cannot be reached.";
      at("server").className = "wrong";
    }
  };

  const enter = async () => {
    const signed = Boolean(SizingFunctions.key());
    at("sign-out").hidden = !signed;
    at("administration").hidden = true;
    at("who").className = "";
    if (!signed) {
      at("who").textContent = "Not signed in.";
      return;
    }
    try {
      const me = await asked("v1/me");
      const limits = `${me.limits.batch.toLocaleString("en")} calls a request, ${me.limits.rate} requests a second`;
      at("who").textContent = `Signed in for ${me.tenant}${me.admin ? ", as administrator" : ""}: ${limits}.`;
      functions = await asked("v1/functions");
      list();
      at("administration").hidden = !me.admin;
      if (me.admin) version(await asked("v1/presets"));
    } catch (error) {
      at("who").textContent = `Not signed in: ${error.message}.`;
      at("who").className = "wrong";
    }
  };

  const list = () => {
    const wanted = at("search").value.trim().toLowerCase();
    const found = functions.filter((each) => `${each.name} ${each.help}`.toLowerCase().includes(wanted));
    at("functions").replaceChildren(...found.map(entry));
    if (!found.length) at("functions").append(element("p", "No function has that in its name or its help."));
  };

  const entry = (each) => {
    const made = element("details", "", element("summary", "", element("h3", each.name), ` ${each.help}`));
    made.id = each.name;
    made.append(element("p", `Gives: ${each.result}.`));
    for (const example of each.examples) {
      const tried = element("button", "Put into the cell");
      tried.type = "button";
      tried.addEventListener("click", () => write(example));
      made.append(element("p", "", element("code", example), " ", ...(typeof Excel === "undefined" ? [] : [tried])));
    }
    const facts = element("dl");
    for (const argument of each.arguments) {
      const left = argument.optional ? ` (optional${argument.default ? `; ${argument.default}` : ""})` : "";
      facts.append(element("dt", argument.name + left), element("dd", `${argument.help} ${sentence(argument.allowed)}`));
    }
    made.append(facts);
    return made;
  };

  const write = (formula) =>
    Excel.run(async (context) => {
      context.workbook.getActiveCell().formulas = [[formula]];
      await context.sync();
    });

  const version = (state) => {
    at("version").textContent = state.version
      ? `Upload ${state.version} is in force; ${state.versions.length} are kept.`
      : "The service's own catalogue is in force.";
  };

  const upload = async (event) => {
    event.preventDefault();
    const files = [];
    for (const kind of ["models", "gpus", "layer_forms"]) {
      for (const file of at(kind).files) files.push({ kind, name: file.name, text: await file.text() });
    }
    at("uploaded").className = "";
    at("uploaded").textContent = "Checking …";
    try {
      const headers = { "Content-Type": "application/json" };
      version(await asked("v1/presets", { method: "PUT", headers, body: JSON.stringify({ files }) }));
      at("uploaded").textContent = "In force. Recalculate your sheets (Ctrl+Alt+F9).";
      functions = await asked("v1/functions");
      list();
    } catch (error) {
      at("uploaded").textContent = `Refused: ${error.message}.`;
      at("uploaded").className = "wrong";
    }
  };

  const start = () => {
    at("sign-in").addEventListener("submit", (event) => {
      event.preventDefault();
      SizingFunctions.signIn(at("key").value.trim());
      at("key").value = "";
      enter();
    });
    at("sign-out").addEventListener("click", () => {
      SizingFunctions.signIn("");
      functions = [];
      at("functions").replaceChildren(element("p", "Sign in to see the functions."));
      enter();
    });
    at("search").addEventListener("input", list);
    at("upload").addEventListener("submit", upload);
    health();
    enter();
  };

  const ready = typeof Office !== "undefined" && Office.onReady ? Office.onReady() : null;
  const patience = new Promise((done) => setTimeout(done, 3000)); // outside Office the page is of use too
  Promise.race([ready, patience]).then(start);
})();
