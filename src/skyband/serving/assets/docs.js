// The OpenAPI document, readable.
import { element } from "./format.js";

// Words between backticks are code.
function told(said) {
  return said.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part));
}

const { info, paths } = await (await fetch("/openapi.json")).json();
const page = document.getElementById("paths");
page.append(element("p", { class: "about" }, ...told(info.description)));
for (const [path, methods] of Object.entries(paths)) {
  for (const [method, about] of Object.entries(methods)) {
    const given = (about.parameters ?? []).filter((each) => each.in === "query"), sent = about.requestBody ? [["body", "`{\"sql\": \"SELECT …\"}`, as `application/json`"]] : [];
    const facts = [...given.map((each) => [each.name, each.description]), ...sent];
    const where = method === "get" && !path.includes("{") ? element("a", { href: path }, path) : path; // what can be looked at as it is
    page.append(element("section", { class: "card" }, element("h2", {}, `${method.toUpperCase()} `, where), element("p", { class: "sub" }, ...told(about.summary)),
      facts.length ? element("dl", { class: "facts" }, ...facts.flatMap(([name, said]) => [element("dt", {}, name), element("dd", {}, ...told(said))])) : null));
  }
}
