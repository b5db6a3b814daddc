// People: who changes what. Only the rows in sight are in the document, however many there are.
import { h, printing, replace, setText } from "../dom";
import * as format from "../format";
import type { Values } from "../source";
import { limitAt, position, type View } from "../view";

const SHOWN = 14;
const PRINTED = 1000; // rows; of more the first are printed, and that is said
const NARROW = matchMedia("(max-width: 720px)"); // there a row has its changes on lines of their own

/** Pixels of a row, as in page.css. */
function rowHeight(): number {
  return NARROW.matches ? 76 : 34;
}

export function people(view: View): HTMLElement {
  const { people: given, n_affected } = view.part;
  const section = h("section", { id: "people", "aria-labelledby": "people-head" });
  if (!given.listed) {
    section.append(
      h("h2", { id: "people-head" }, "People were left out"),
      h("p", {}, `This page holds no row of the ${format.count(n_affected)} affected: it was written without them. Counts and averages above use all of them.`),
    );
    return section;
  }
  const list = new List(view);
  const sampled = given.sampled
    ? ` The table lists a random sample of ${format.count(list.n)} of them; curves and numbers above use all ${format.count(given.n)}.`
    : "";
  section.append(
    h("h2", { id: "people-head" }, `What each of the ${format.count(n_affected)} affected would change`),
    h("p", {}, `Only what changes is listed, old and new value.${sampled} A row opens that person's costs under each direction.`),
    ...list.elements,
  );
  return section;
}

class List {
  readonly n: number;
  readonly elements: HTMLElement[];
  private order: Uint32Array;
  private found: number;
  private first = -1;
  private by: "row" | "cost" | "direction" = "row";
  private down = false;
  private query = "";
  private chosen = -1;
  private onPaper = false;
  private readonly row: Values;
  private readonly cost: Values;
  private readonly direction: Values;
  private readonly start: Values;
  private readonly feature: Values;
  private readonly before: Values;
  private readonly after: Values;
  private readonly body = h("div", { class: "rows", role: "rowgroup" });
  private readonly space = h("div", { class: "space" }, this.body);
  private readonly box: HTMLElement;
  private readonly status = h("p", { class: "says", role: "status" });
  private readonly person = h("div", { class: "person", id: "person" });
  private readonly texts: string[];
  private readonly features: string[];

  constructor(private readonly view: View) {
    const p = view.part.people;
    const of = (ref: typeof p.row) => view.source.values(ref!);
    this.row = of(p.row);
    this.cost = of(p.cost);
    this.direction = of(p.direction);
    this.start = of(p.change_start);
    this.feature = of(p.change_feature);
    this.before = of(p.change_before);
    this.after = of(p.change_after);
    this.texts = p.texts!;
    this.features = p.features!;
    this.n = this.row.length;
    this.order = Uint32Array.from({ length: this.n }, (_, i) => i);
    this.found = this.n;
    const search = h("input", { type: "search", id: "search", placeholder: "feature or value", input: () => this.search(search.value) });
    const sort = h(
      "select",
      { id: "sort", change: () => this.sort(sort.value) },
      [["row", "row number"], ["cost", "cost, lowest first"], ["-cost", "cost, highest first"], ["direction", "direction"]].map(([value, text]) => h("option", { value }, text)),
    );
    const head = h("div", { class: "row head", role: "row" }, ["Row", "Cost", "Direction", "Changes"].map((text, j) => h("span", { role: "columnheader", class: j < 2 ? "number" : j === 3 ? "changes" : undefined }, text)));
    this.box = h("div", { class: "list", role: "table", tabindex: 0, "aria-label": "What each person changes", "aria-rowcount": this.n + 1, scroll: () => this.draw(), keydown: (e: KeyboardEvent) => this.key(e) }, h("div", { role: "rowgroup" }, head), this.space);
    this.elements = [h("p", { class: "tools" }, h("label", { for: "search" }, "Search "), search, h("label", { for: "sort" }, " Sort by "), sort), this.status, this.box, this.person];
    view.state.listen(() => this.path());
    NARROW.addEventListener("change", () => this.filter());
    printing(this.box, () => this.print(true), () => this.print(false));
    this.filter();
  }

  private search(text: string): void {
    this.query = text.trim().toLowerCase();
    this.filter();
  }

  private sort(value: string): void {
    this.down = value.startsWith("-");
    this.by = value.replace("-", "") as "row" | "cost" | "direction";
    this.filter();
  }

  private filter(): void {
    if (this.onPaper) return;
    const text = new Uint8Array(this.texts.length);
    const name = new Uint8Array(this.features.length);
    if (this.query) {
      this.texts.forEach((t, i) => (text[i] = Number(t.toLowerCase().includes(this.query))));
      this.features.forEach((t, i) => (name[i] = Number(t.toLowerCase().includes(this.query))));
    }
    const matches = (i: number) => {
      if (!this.query || String(this.row[i]) === this.query) return true;
      for (let j = this.start[i]; j < this.start[i + 1]; j++) {
        if (name[this.feature[j]] || text[this.before[j]] || text[this.after[j]]) return true;
      }
      return false;
    };
    const kept: number[] = [];
    for (let i = 0; i < this.n; i++) if (matches(i)) kept.push(i);
    const sign = this.down ? -1 : 1;
    const value = (i: number) => (this.by === "row" ? this.row[i] : this.by === "direction" ? (this.direction[i] < 0 ? 1e9 : this.direction[i]) : this.cost[i] < 0 ? Infinity : this.cost[i]);
    kept.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return x === y ? this.row[a] - this.row[b] : sign * (x < y ? -1 : 1);
    });
    this.order = Uint32Array.from(kept);
    this.found = kept.length;
    this.space.style.height = `${this.found * rowHeight()}px`;
    this.box.scrollTop = 0;
    this.first = -1;
    setText(this.status, this.query ? `${format.count(this.found)} of ${format.count(this.n)} match` : `${format.count(this.n)} listed`);
    this.draw();
  }

  private draw(): void {
    if (this.onPaper) return;
    const height = rowHeight();
    const first = Math.max(0, Math.floor(this.box.scrollTop / height) - 3);
    if (first === this.first) return;
    this.first = first;
    const rows: HTMLElement[] = [];
    for (let at = first; at < Math.min(first + SHOWN + 6, this.found); at++) rows.push(this.line(at));
    this.body.style.transform = `translateY(${first * height}px)`;
    replace(this.body, rows);
  }

  /** On paper nothing scrolls: all rows that match, up to a limit. */
  private print(begins: boolean): void {
    this.onPaper = begins;
    if (!begins) return this.filter();
    const n = Math.min(this.found, PRINTED);
    this.space.style.height = "auto";
    this.body.style.transform = "none";
    replace(this.body, Array.from({ length: n }, (_, at) => this.line(at)));
    if (n < this.found) setText(this.status, `${format.count(this.found)} listed; the first ${format.count(n)} are printed`);
  }

  private line(at: number): HTMLElement {
    const i = this.order[at];
    const none = this.direction[i] < 0;
    return h(
      "div",
      { class: `row${i === this.chosen ? " chosen" : ""}`, role: "row", "aria-rowindex": at + 2, "data-at": at, click: () => this.choose(at) },
      h("span", { role: "cell", class: "number" }, format.count(this.row[i])),
      h("span", { role: "cell", class: "number" }, none ? "none" : format.cost(this.cost[i])),
      h("span", { role: "cell" }, none ? "no recourse" : h("span", { class: `key k${this.direction[i] % 7}` }, String(this.direction[i] + 1))),
      h("span", { role: "cell", class: "changes" }, this.changes(i).map(([f, a, b], j) => [j ? " · " : "", h("b", {}, f), ` ${a} → ${b}`]).flat()),
    );
  }

  private changes(i: number): [string, string, string][] {
    const found: [string, string, string][] = [];
    for (let j = this.start[i]; j < this.start[i + 1]; j++) found.push([this.features[this.feature[j]], this.texts[this.before[j]], this.texts[this.after[j]]]);
    return found;
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.found) return;
    event.preventDefault();
    const now = this.order.indexOf(this.chosen);
    const to = Math.min(Math.max(now + step, 0), this.found - 1);
    const height = rowHeight();
    const top = to * height;
    if (top < this.box.scrollTop || top > this.box.scrollTop + this.box.clientHeight - 2 * height) this.box.scrollTop = Math.max(0, top - 4 * height);
    this.choose(to);
  }

  private choose(at: number): void {
    this.chosen = this.order[at];
    this.first = -1;
    this.draw();
    this.path();
  }

  /** One person along the slider: what each direction costs, and whether the limit reaches it. */
  private path(): void {
    if (this.chosen < 0) return;
    const i = this.chosen;
    const limit = limitAt(this.view, position(this.view));
    const lines = this.view.part.people.costs!.map((ref, d) => {
      const cost = this.view.source.values(ref)[i];
      const said = cost < 0 ? "no recourse" : cost <= limit * (1 + 1e-6) ? "reached" : "not within the limit";
      return h("li", {}, h("span", { class: `key k${d % 7}` }, String(d + 1)), ` ${cost < 0 ? "" : `cost ${format.cost(cost)}, `}${said}`);
    });
    replace(
      this.person,
      h("h3", {}, `Row ${format.count(this.row[i])} at a limit of ${format.cost(limit)}`),
      h("ul", { class: "plain" }, lines),
      h("p", {}, this.changes(i).map(([f, a, b], j) => [j ? "; " : "Changes along its cheapest: ", h("b", {}, f), ` ${a} → ${b}`]).flat()),
    );
  }
}
