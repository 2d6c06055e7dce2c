/* openapi.json as a page. */
"use strict";

(async () => {
  const element = (name, text, ...children) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  };
  const content = await (await fetch("openapi.json")).json();
  for (const [path, methods] of Object.entries(content.paths)) {
    for (const [method, facts] of Object.entries(methods)) {
      const title = element("summary", "", element("code", `${method.toUpperCase()} ${path}`));
      const made = element("details", "", title, element("p", facts.description || facts.summary));
      const form = facts.requestBody?.content?.["application/json"]?.schema;
      if (form) made.append(element("p", "Body:"), element("pre", "", element("code", JSON.stringify(form, null, 2))));
      for (const [status, reply] of Object.entries(facts.responses)) {
        made.append(element("p", `${status}: ${reply.description}`));
      }
      document.getElementById("requests").append(made);
    }
  }
})();
