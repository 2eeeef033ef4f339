// The OpenAPI document, readable.
import { element } from "./format.js";

const { paths } = await (await fetch("/openapi.json")).json();
for (const [path, methods] of Object.entries(paths)) {
  for (const [method, about] of Object.entries(methods)) {
    const parameters = (about.parameters ?? []).filter((each) => each.in === "query");
    document.getElementById("paths").append(element("section", { class: "card" }, element("h2", {}, `${method.toUpperCase()} ${path}`), element("p", { class: "sub" }, about.summary),
      parameters.length ? element("dl", { class: "facts" }, ...parameters.flatMap((each) => [element("dt", {}, each.name), element("dd", {}, each.description)])) : null));
  }
}
