// The one place where elements are made. Text is always text: nothing here, or elsewhere, parses HTML.

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  add(element, children);
  return element;
}

export function add(parent: Element, children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

export function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

export function replace(parent: Element, ...children: (Child | Child[])[]): void {
  parent.replaceChildren();
  add(parent, children);
}

/** A table of text; numbers are aligned at the right. */
export function table(caption: string, head: string[], rows: (Child | Child[])[][], numeric: number[] = []): HTMLElement {
  const long = (i: number) => rows.some((row) => (typeof row[i] === "string" ? row[i].length : 0) > 24);
  const kinds = head.map((_, i) => (numeric.includes(i) ? "number" : long(i) ? "words" : undefined));
  const side = (i: number) => kinds[i];
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      captioned(caption),
      h("thead", {}, h("tr", {}, head.map((text, i) => h("th", { scope: "col", class: side(i) }, text)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: side(i) }, cell))))),
    ),
  );
}

/** A caption that stays in sight, as wide as what is seen of its table. */
export function captioned(text: string): HTMLElement {
  return h("caption", {}, h("span", {}, text));
}

export function details(summary: string, ...children: (Child | Child[])[]): HTMLDetailsElement {
  return h("details", {}, h("summary", {}, summary), ...children);
}

/** What changes while the page is printed; forgotten once the element is gone. */
export function printing(element: Element, before: () => void, after: () => void): void {
  const follow = (event: Event) => {
    if (element.isConnected) return event.type === "beforeprint" ? before() : after();
    window.removeEventListener("beforeprint", follow);
    window.removeEventListener("afterprint", follow);
  };
  window.addEventListener("beforeprint", follow);
  window.addEventListener("afterprint", follow);
}

/** A name that may break where its words do: after underscores, dots and dashes, and before capitals. */
export function named(text: string): Child[] {
  return text.split(/(?<=[_./-])(?=[^_./-])|(?<=[a-z0-9])(?=[A-Z])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

/** Set text only where it differs: a text node that stays is not laid out again. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
