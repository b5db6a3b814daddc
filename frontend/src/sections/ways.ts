// The ways out: one card for each direction, in words first, then what moves and by how much at most.
import { captioned, details, h, named, setText, table } from "../dom";
import * as format from "../format";
import type { ChartRow, Direction } from "../types";
import { Curve, position, type View } from "../view";

export function ways(view: View): HTMLElement {
  const { part } = view;
  const n = part.directions.length;
  const section = h("section", { id: "ways", "aria-labelledby": "ways-head" }, h("h2", { id: "ways-head" }, finding(view)));
  if (!n) section.append(h("p", { class: "empty" }, "No direction was found."));
  else if (!part.n_covered) {
    section.append(h("p", { class: "empty" }, `${n === 1 ? "The direction that was found helps" : `The ${n} directions that were found help`} nobody within the budget of ${part.budget}. A larger budget, or fewer features held fixed, may.`));
    return section;
  }
  section.append(columns(part.directions, part.directions.map((_, i) => card(view, i))));
  if (part.n_directions > n) section.append(h("p", {}, `${part.n_directions - n} more directions are in the result file and not drawn here; every number counts them.`));
  return section;
}

/** Two columns of about the same length, in order: the first cards at the left, the others at the right. */
function columns(directions: Direction[], cards: HTMLElement[]): HTMLElement {
  if (cards.length < 2) return h("div", { class: "cards one" }, cards);
  const lines = directions.map((d) => 12 + d.words.length / 30 + d.moves.length + 2 * d.rules.length + d.groups.length + 2 * d.chart.reduce((n, row) => n + row.lines.length, 0));
  const until = (k: number) => lines.slice(0, k).reduce((a, b) => a + b, 0);
  const uneven = (k: number) => Math.abs(2 * until(k) - until(lines.length));
  let split = 1;
  for (let k = 2; k < cards.length; k++) if (uneven(k) < uneven(split)) split = k;
  return h("div", { class: "cards" }, h("div", {}, cards.slice(0, split)), h("div", {}, cards.slice(split)));
}

function finding(view: View): string {
  const { directions, n_affected } = view.part;
  if (!n_affected) return "No way out is needed";
  if (!directions.length || !view.part.n_covered) return "No way out was found";
  if (directions.length === 1) return `One way out: ${lower(directions[0].words)}`;
  const takers = directions.map((d) => view.source.values(d.takers.count)).map((c) => c[c.length - 1]);
  const most = takers.indexOf(Math.max(...takers));
  return `Of ${directions.length} ways out, number ${most + 1} is the cheapest for the most people: ${format.count(takers[most])} of ${format.count(n_affected)}`;
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function card(view: View, i: number): HTMLElement {
  const { part, source, state } = view;
  const direction = part.directions[i];
  const alone = new Curve(source, direction.alone);
  const takers = new Curve(source, direction.takers);
  const reach = source.values(direction.reach);
  const says = h("p", { class: "says" });
  const bars = new Bars(view, direction, i);
  const k = new Scalar(view, direction, i, (value) => {
    bars.atScalar(value);
    setText(says, k.says(value));
  });
  const update = () => {
    const at = position(view);
    const on = Math.min(at, reach.length - 1);
    bars.atLimit(on);
    k.show(reach[on]);
    const taken = takers.covered(at);
    setText(
      says,
      `Alone it covers ${format.share(alone.coverage(at))} at an average cost of ${format.cost(alone.average(at), format.NONE)}. ` +
        `It is the cheapest for ${format.count(taken)} of ${format.count(part.n_affected)} (${format.share(taken / part.n_affected)}).`,
    );
  };
  state.listen(update);
  update();
  return h(
    "article",
    { class: "card", "aria-labelledby": `way-${i}` },
    h("h3", { id: `way-${i}` }, h("span", { class: `key k${i % 7}`, "aria-hidden": "true" }, String(i + 1)), h("span", {}, h("span", { class: "sr" }, `Direction ${i + 1}: `), direction.words)),
    says,
    bars.element,
    direction.more_moves ? h("p", { class: "aside" }, `${direction.more_moves} more features move by less in cost; the chart below counts them.`) : null,
    k.element,
    direction.groups.length
      ? table("Who takes it", ["Group", "Cheapest for", "Share of the group's affected"], direction.groups.map((g) => [g.name, format.count(g.count), format.share(g.n ? g.count / g.n : NaN)]), [1, 2])
      : null,
    chart(direction.chart, i),
  );
}

/** Signed bars, one for each feature: as long as the change costs, labelled in the feature's own units. */
class Bars {
  readonly element: HTMLElement;
  private readonly moves: { bar: HTMLElement; text: HTMLElement; within: ArrayLike<number> }[];
  private readonly rules: { bar: HTMLElement; text: HTMLElement }[];
  private readonly longest: number;
  private readonly reach: ArrayLike<number>;

  constructor(
    view: View,
    private readonly direction: Direction,
    i: number,
  ) {
    this.longest = Math.max(1e-12, ...direction.moves.map((m) => m.cost), ...direction.rules.map((r) => r.cost));
    this.reach = view.source.values(direction.reach);
    this.moves = direction.moves.map((m) => ({ bar: h("i"), text: h("td", { class: "amount" }), within: view.source.values(m.within) }));
    this.rules = direction.rules.map(() => ({ bar: h("i"), text: h("td", { class: "amount" }) }));
    const line = (label: string, kind: string, cells: { bar: HTMLElement; text: HTMLElement }) =>
      h("tr", { class: kind }, h("th", { scope: "row" }, named(label)), cells.text, h("td", { class: "bar", "aria-hidden": "true" }, h("span", {}, cells.bar)));
    this.element = h(
      "table",
      { class: `bars b${i % 7}` },
      h("caption", {}, "What changes, at most. Bars: cost of the change; left is lower, right is higher or another category."),
      h("tbody", {}, direction.moves.map((m, j) => line(m.label, m.sign < 0 ? "down" : "up", this.moves[j])), direction.rules.map((r, j) => line(r.label, "turn", this.rules[j]))),
    );
  }

  atLimit(at: number): void {
    this.direction.moves.forEach((m, j) => this.move(j, this.moves[j].within[at], m));
    this.turns(this.reach[at]);
  }

  atScalar(k: number): void {
    this.direction.moves.forEach((m, j) => {
      const free = k * m.per_k;
      this.move(j, Math.min(m.whole ? Math.max(Math.ceil(free - 0.5), 0) : free, m.most), m);
    });
    this.turns(k);
  }

  private move(j: number, amount: number, m: Direction["moves"][number]): void {
    const { bar, text } = this.moves[j];
    setText(text, amount ? `${m.sign < 0 ? "−" : "+"}${format.withUnit(format.atMost(amount), m.unit)}` : "0");
    bar.style.transform = `scaleX(${m.most ? (amount / m.most) * (m.cost / this.longest) : 0})`;
  }

  private turns(k: number): void {
    this.direction.rules.forEach((r, j) => {
      const fired = r.from.filter((f) => f.k < k);
      const names = fired.length > 2 && fired.length === r.from.length ? "any other" : fired.map((f) => f.value).join(" or ");
      setText(this.rules[j].text, fired.length ? `${names} → ${r.to}` : "not yet");
      this.rules[j].bar.style.transform = `scaleX(${fired.length ? r.cost / this.longest : 0})`;
    });
  }
}

/** How far along one direction: its scalar k, on its own. */
class Scalar {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly output: HTMLOutputElement;
  private readonly count: ArrayLike<number>;
  private readonly sum: ArrayLike<number>;

  constructor(
    private readonly view: View,
    private readonly direction: Direction,
    i: number,
    changed: (k: number) => void,
  ) {
    const { most, steps } = direction.by_k;
    this.count = view.source.values(direction.by_k.count);
    this.sum = view.source.values(direction.by_k.sum);
    this.output = h("output", { for: `k-${i}`, class: "value" });
    this.input = h("input", {
      type: "range",
      id: `k-${i}`,
      min: 0,
      max: steps,
      step: 1,
      disabled: !most,
      input: () => {
        const k = (most * Number(this.input.value)) / steps;
        this.label(k);
        changed(k);
      },
    });
    this.element = h("p", { class: "scalar" }, h("label", { for: `k-${i}` }, "How far along it (k) "), this.input, this.output);
  }

  show(k: number): void {
    const { most, steps } = this.direction.by_k;
    this.input.value = String(most ? Math.round((k / most) * steps) : 0);
    this.label(k);
  }

  private label(k: number): void {
    const text = format.cost(k);
    setText(this.output, text);
    this.input.setAttribute("aria-valuetext", `k = ${text}`);
  }

  says(k: number): string {
    const { most, steps } = this.direction.by_k;
    const at = most ? Math.round((k / most) * steps) : 0;
    const n = this.count[at];
    const average = n ? this.sum[at] / n : NaN;
    return `Up to k = ${format.cost(k)} it alone covers ${format.count(n)} of ${format.count(this.view.part.n_affected)} (${format.share(n / this.view.part.n_affected)}) at an average cost of ${format.cost(average, format.NONE)}.`;
  }
}

function chart(rows: ChartRow[], i: number): HTMLElement {
  const body = rows.flatMap((row) =>
    row.lines.map(([feature, text, aside], j) =>
      h(
        "tr",
        { class: `${j === 0 ? "begins" : ""}${aside ? " aside" : ""}` },
        h("th", { scope: "row" }, h("b", {}, named(feature)), ` ${text}`),
        h("td", { class: "number" }, j ? "" : `+${format.share(row.new_coverage)}`),
        h("td", { class: "number" }, j ? "" : format.cost(row.new_cost, format.NONE)),
        h("td", { class: "number" }, j ? "" : format.share(row.coverage)),
        h("td", { class: "number" }, j ? "" : format.cost(row.cost, format.NONE)),
      ),
    ),
  );
  const opened = details(
    "Cumulative rules chart",
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": `Rules chart of direction ${i + 1}` },
      h(
        "table",
        { class: "rules" },
        captioned(`Rules add up from top to bottom; the last row is what direction ${i + 1} covers alone.`),
        h("thead", {}, h("tr", {}, ["New rule, and what moves at most", "Newly covered", "Their cost", "All covered", "Their cost"].map((text, j) => h("th", { scope: "col", class: j > 0 ? "number" : undefined }, text)))),
        h("tbody", {}, body),
      ),
    ),
  );
  opened.open = true;
  return opened;
}
