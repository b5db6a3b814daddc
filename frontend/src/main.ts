// Starts the page: a report with its data in the file, a live page that asks its server, or a widget in a notebook.
import { add, h } from "./dom";
import { connect } from "./live";
import { budget } from "./sections/budget";
import { compare } from "./sections/compare";
import { far } from "./sections/far";
import { first } from "./sections/first";
import { groups } from "./sections/groups";
import { people } from "./sections/people";
import { recompute } from "./sections/recompute";
import { rests } from "./sections/rests";
import { trying } from "./sections/trying";
import { ways } from "./sections/ways";
import { Source } from "./source";
import { State } from "./state";
import type { Live, View } from "./view";
import "./page.css";

/** Draw a page into an element; drawing again replaces it. */
export function mount(root: HTMLElement, source: Source, live: Live | null, keepsAddress: boolean): void {
  const state = new State(keepsAddress);
  const draw = (from: Source) => {
    state.clear();
    const { data } = from;
    const parts = Object.keys(data.explanations);
    const name = parts.includes(state.choice.part) ? state.choice.part : parts[0];
    const view: View = { source: from, data, state, part: data.explanations[name], name, live, reload: draw };
    document.title = keepsAddress ? data.title : document.title;
    const body = view.part?.n_affected
      ? [compare(view), budget(view), far(view), ways(view), groups(view), people(view), trying(view), recompute(view), rests(view)]
      : [compare(view), view.part || !data.audit ? empty(view) : null, groups(view), view.part ? null : absent(), recompute(view), rests(view)];
    const main = h("main", {});
    add(main, [first(view), contents(body), ...body]);
    root.replaceChildren(main);
    state.listen((choice) => {
      if (choice.part && choice.part !== view.name && parts.includes(choice.part)) draw(from);
    });
    if (state.choice.section) root.querySelector(`#${CSS.escape(state.choice.section)}`)?.scrollIntoView();
    follow(root, state);
  };
  window.addEventListener("beforeprint", () => root.querySelectorAll("details").forEach((d) => (d.open = true)));
  draw(source);
}

function contents(body: (HTMLElement | null)[]): HTMLElement {
  const names: Record<string, string> = { compare: "Comparison", far: "How far", ways: "Ways out", groups: "Groups", people: "People", try: "Try it yourself", again: "Recompute", rests: "What it rests on" };
  const links = body.filter((e) => e && names[e.id]).map((e) => h("a", { href: `#section=${e!.id}`, click: (event: Event) => { event.preventDefault(); e!.scrollIntoView({ behavior: "smooth" }); e!.setAttribute("tabindex", "-1"); e!.focus({ preventScroll: true }); } }, names[e!.id]));
  return h("nav", { class: "contents", "aria-label": "Sections" }, links);
}

function empty(view: View): HTMLElement {
  const { n_rows } = view.part ?? { n_rows: 0 };
  return h("section", { id: "far", class: "empty" }, h("h2", {}, "Nobody is affected"), h("p", {}, `All ${n_rows.toLocaleString("en")} rows have the favourable outcome, so nothing has to change. There is nothing to draw, and no number below is missing.`));
}

function absent(): HTMLElement {
  return h("section", { id: "people", class: "empty" }, h("h2", {}, "People and directions were left out"), h("p", {}, "This audit was read from a file without its members: it holds the groups' numbers and none of the people, so there is no curve, no direction and no list to show."));
}

/** Keep the section that is being read in the address. */
function follow(root: HTMLElement, state: State): void {
  const seen = new IntersectionObserver(
    (entries) => {
      const top = entries.find((e) => e.isIntersecting);
      if (top && state.choice.section !== top.target.id) state.set({ section: top.target.id === "first" ? "" : top.target.id });
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );
  root.querySelectorAll("main > section, main > header").forEach((section) => seen.observe(section));
}

function failed(root: HTMLElement, error: unknown): void {
  root.replaceChildren(h("main", {}, h("header", { class: "first" }, h("h1", {}, "This page cannot be shown"), h("p", { role: "alert" }, error instanceof Error ? error.message : String(error)))));
}

async function start(): Promise<void> {
  const root = document.getElementById("globece");
  const given = document.getElementById("globece-data");
  if (!root || !given) return;
  try {
    const text = given.textContent ?? "null";
    if (text.trim() !== "null") return mount(root, Source.fromText(text), null, true);
    await connect(root, (source, live) => mount(root, source, live, true));
  } catch (error) {
    failed(root, error);
  }
}

/** A notebook's widget: a shadow tree, so that neither style reaches the other. */
function render({ model, el }: { model: { get(name: string): unknown; on(name: string, f: () => void): void }; el: HTMLElement }): void {
  const shadow = el.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(String(model.get("css_text")));
  shadow.adoptedStyleSheets = [sheet];
  const root = h("div", { class: "globece widget" });
  shadow.append(root);
  const show = () => {
    const view = model.get("page") as DataView;
    try {
      mount(root, Source.fromBinary(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) as ArrayBuffer), null, false);
    } catch (error) {
      failed(root, error);
    }
  };
  model.on("change:page", show);
  show();
}

void start();
export default { render };
