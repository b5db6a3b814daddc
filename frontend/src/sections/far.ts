// How far people must go: the coverage-cost profile, and the minimum costs on the same axis.
import { Plot, colour, dash, figure, rule, type Overlay } from "../chart";
import { details, h, table } from "../dom";
import { svg } from "../dom";
import * as format from "../format";
import type { Series } from "../types";
import { Curve, drawnGroups, found, last, leftOut, limitAt, position, type View } from "../view";
import { steps } from "./first";

const LEFT = 52;

/** Room at the right for the longest label of a line, the same under both charts so that their axes agree. */
function right(lines: Line[], width: number): number {
  const longest = Math.max(0, ...lines.map((line) => line.short.length));
  return Math.min(Math.max(24 + 7.2 * longest, 60), width < 560 ? 96 : 220);
}

interface Line {
  name: string;
  short: string;
  curve: Followed;
  colour: string;
  dash: string;
  wide: number;
  band?: { limit: ArrayLike<number>; low: ArrayLike<number>; high: ArrayLike<number> };
}

interface Followed {
  coverage(at: number): number;
  average(at: number): number;
}

/** A group's curve has its own limits; it is looked up by cost. */
class GroupCurve implements Followed {
  private readonly curve: Curve;
  private readonly limits: ArrayLike<number>;

  constructor(
    private readonly view: View,
    series: Series,
  ) {
    this.curve = new Curve(view.source, series);
    this.limits = view.source.values(view.data.audit!.limits);
  }

  coverage(at: number): number {
    return this.curve.coverage(found(this.limits, limitAt(this.view, at)));
  }

  average(at: number): number {
    return this.curve.average(found(this.limits, limitAt(this.view, at)));
  }
}

export function far(view: View): HTMLElement {
  const { part, source } = view;
  const total = new Curve(source, part.total);
  const section = h("section", { id: "far", "aria-labelledby": "far-head" }, h("h2", { id: "far-head" }, finding(view, total)));
  if (!part.n_covered) {
    section.append(h("p", { class: "empty" }, "There is no curve to draw: nobody is covered within the budget."));
    return section;
  }
  const lines = curves(view, total);
  const more = view.data.audit ? drawnGroups(view.data.audit).more : 0;
  section.append(
    h("h3", {}, "Coverage by the most that anybody pays"),
    profile(view, lines),
    more ? h("p", { class: "aside" }, leftOut(more)) : "",
    h("h3", {}, `Minimum cost of each ${part.histogram.none ? "affected input that has recourse" : "affected input"}`),
    distribution(view, lines),
    details(
      "The same as a table",
      table(
        "Coverage and average cost by limit",
        ["Limit on cost", ...lines.flatMap((line) => [`${line.name}: covered`, "average cost"])],
        tenths(view).map((at) => [
          format.cost(limitAt(view, at)),
          ...lines.flatMap((line) => [format.share(line.curve.coverage(at)), format.cost(line.curve.average(at), format.NONE)]),
        ]),
        Array.from({ length: 1 + 2 * lines.length }, (_, i) => i),
      ),
    ),
  );
  return section;
}

function tenths(view: View): number[] {
  const { points } = view.part.grid;
  return [...Array.from({ length: 11 }, (_, i) => Math.round(((points - 1) * i) / 10)), last(view.part)];
}

function finding(view: View, total: Curve): string {
  const { part } = view;
  if (!part.n_affected) return "Nobody is affected";
  if (!part.n_covered) return "Nobody has recourse within the budget";
  const half = at(total, part, 0.5);
  const most = total.count.findIndex((n) => n === part.n_covered);
  const end = `the most expensive recourse costs ${format.cost(limitAt(view, most))}`;
  if (half < 0) return `Fewer than half have recourse within the budget; ${end}`;
  return `Half of the ${format.count(part.n_affected)} affected pay at most ${format.cost(limitAt(view, half))}; ${end}`;
}

function at(curve: Curve, part: View["part"], share: number): number {
  return curve.count.findIndex((n) => n >= share * part.n_affected);
}

function curves(view: View, total: Curve): Line[] {
  const { part, source, data } = view;
  if (data.audit) {
    return drawnGroups(data.audit)
      .drawn.filter((g) => g.series && g.series.n > 0)
      .map((g, i) => ({
        name: g.name,
        short: format.short(g.name, 26),
        curve: new GroupCurve(view, g.series!),
        colour: colour(i),
        dash: dash(i),
        wide: 2,
        band: g.curve ? { limit: source.values(g.curve.limit), low: source.values(g.curve.low), high: source.values(g.curve.high) } : undefined,
      }));
  }
  const alone = part.directions.map((d, i) => ({
    name: `Direction ${i + 1} alone`,
    short: `${i + 1} alone`,
    curve: new Curve(source, d.alone),
    colour: colour(i),
    dash: dash(i),
    wide: 1.5,
  }));
  if (alone.length < 2) return [{ name: "Direction 1", short: "", curve: total, colour: colour(0), dash: "", wide: 2.5 }];
  return [...alone.slice(0, 6), { name: "All directions", short: "all", curve: total, colour: "var(--ink)", dash: "", wide: 2.5 }];
}

function profile(view: View, lines: Line[]): HTMLElement {
  const { part, state } = view;
  const { end, points, step } = part.grid;
  const label = `Coverage against the limit on cost. ${lines
    .map((line) => `${line.name}: ${format.share(line.curve.coverage(last(part)))} at an average cost of ${format.cost(line.curve.average(last(part)), format.NONE)}`)
    .join("; ")}`;
  let follow: (() => void) | null = null;
  state.listen(() => follow?.());
  const ready = (overlay: Overlay) => {
    const move = rule(overlay, overlay.y(100), overlay.y(0));
    const dots = lines.map((line) => {
      const dot = svg("circle", { r: 4.5, class: "at" });
      dot.style.fill = line.colour;
      overlay.root.append(dot);
      return dot;
    });
    follow = () => {
      const i = position(view);
      const x = Math.min(limitAt(view, i), end);
      move(x, end);
      const on = Math.min(i, points - 1); // beyond the chart a dot stays at the end of its line
      lines.forEach((line, j) =>
        dots[j].setAttribute("transform", `translate(${overlay.x(x)},${overlay.y(line.curve.coverage(on) * 100)})`),
      );
    };
    follow();
    dragging(view, overlay);
  };
  const ends = (height: number) => spread(lines.map((line) => ({ line, y: line.curve.coverage(points - 1) * 100 })), 1500 / (height - 70));
  return figure(
    label,
    (width) => {
      const height = Math.min(340, Math.max(220, width * 0.42));
      const labels = lines.length > 1 ? ends(height) : [];
      return Plot.plot({
        width,
        height,
        marginLeft: LEFT,
        marginRight: right(lines, width),
        marginBottom: 46,
        x: { label: `${width < 500 ? "limit on" : "limit on cost: the most that anybody pays, in units of"} cost (budget ${part.budget})`, domain: [0, end], labelAnchor: "left" },
        y: { label: "covered (%)", domain: [0, 100], grid: true, ticks: 5 },
        marks: [
          ...lines.flatMap((line) =>
            line.band
              ? [Plot.areaY(Array.from(line.band.low, (low, i) => ({ limit: line.band!.limit[i], low: low * 100, high: line.band!.high[i] * 100 })).filter((r) => r.limit <= end), { x: "limit", y1: "low", y2: "high", fill: line.colour, fillOpacity: 0.18 })]
              : [],
          ),
          ...lines.map((line) =>
            Plot.lineY(steps(line.curve, points, step), { x: "limit", y: "share", curve: "step-after", stroke: line.colour, strokeWidth: line.wide, strokeDasharray: line.dash }),
          ),
          Plot.text(labels, { x: end, y: "at", dx: 8, text: (r: { line: Line }) => r.line.short, textAnchor: "start", fill: "var(--ink)", textOverflow: "ellipsis", lineWidth: width < 560 ? 8 : 20 }),
          Plot.dot(labels, { x: end, y: "at", dx: 3, r: 2.5, fill: (r: { line: Line }) => r.line.colour, clip: false }),
        ],
      }) as never;
    },
    ready,
  );
}

/** Heights for labels at the lines' ends, so that none covers another. */
function spread<T extends { y: number }>(ends: T[], gap: number): (T & { at: number })[] {
  const sorted = ends.map((e) => ({ ...e, at: e.y })).sort((a, b) => b.at - a.at);
  for (let i = 1; i < sorted.length; i++) sorted[i].at = Math.min(sorted[i].at, sorted[i - 1].at - gap);
  for (let i = sorted.length - 1; i >= 0; i--) {
    const floor = i === sorted.length - 1 ? 0 : sorted[i + 1].at + gap;
    if (sorted[i].at < floor) sorted[i].at = floor;
  }
  return sorted;
}

/** The chart itself can be dragged; the slider is the way by keyboard. */
function dragging(view: View, overlay: Overlay): void {
  const { part, state } = view;
  const origin = overlay.x(0);
  const width = overlay.x(part.grid.end) - origin;
  const to = (event: PointerEvent) => {
    const box = overlay.root.getBoundingClientRect();
    const scale = box.width / overlay.root.viewBox.baseVal.width || 1;
    const share = ((event.clientX - box.left) / scale - origin) / width;
    state.set({ limit: Math.round(Math.min(Math.max(share, 0), 1) * (part.grid.points - 1)) });
  };
  overlay.root.classList.add("draggable");
  overlay.root.addEventListener("pointerdown", (event) => {
    overlay.root.setPointerCapture(event.pointerId);
    to(event);
  });
  overlay.root.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) to(event);
  });
}

function distribution(view: View, lines: Line[]): HTMLElement {
  const { part, state } = view;
  const { edges, counts, none } = part.histogram;
  const rows = counts.flatMap((bins, d) =>
    bins.map((n, j) => ({ x1: Math.max(edges[j], 0), x2: edges[j + 1], n, direction: d })).filter((r) => r.n > 0),
  );
  const end = part.grid.end;
  let follow: (() => void) | null = null;
  state.listen(() => follow?.());
  const label = `Minimum costs: ${format.count(part.n_covered)} have recourse within the budget, ${format.count(none)} have none`;
  const element = figure(
    label,
    (width) =>
      Plot.plot({
        width,
        height: 190,
        marginLeft: LEFT,
        marginRight: right(lines, width),
        marginBottom: 46,
        x: { label: `minimum ${view.data.cost_unit}`, domain: [0, end], labelAnchor: "left" },
        y: { label: "affected inputs", grid: true, ticks: 4 },
        marks: [
          Plot.rectY(rows, { ...Plot.stackY({ x1: "x1", x2: "x2", y: "n", fill: (r: { direction: number }) => colour(r.direction), order: (r: { direction: number }) => r.direction }), insetRight: 1 }),
          Plot.ruleY([0], { stroke: "var(--ink)" }),
        ],
      }) as never,
    (overlay) => {
      const [low, high] = [overlay.y(0), Number(overlay.root.viewBox.baseVal.y)];
      const veil = svg("rect", { class: "veil", x: 0, y: high, height: low - high, width: 1 });
      overlay.root.append(veil);
      const move = rule(overlay, high + 8, low);
      follow = () => {
        const x = Math.min(limitAt(view, position(view)), end);
        move(x, end);
        veil.setAttribute("transform", `translate(${overlay.x(x)},0) scale(${Math.max(overlay.x(end) - overlay.x(x), 0)},1)`);
      };
      follow();
      dragging(view, overlay);
    },
  );
  const key = part.directions.slice(0, 7).map((_, i) =>
    h("span", { class: "legend" }, h("span", { class: `key k${i % 7}`, "aria-hidden": "true" }, String(i + 1)), `cheapest: direction ${i + 1}`),
  );
  element.append(
    h(
      "figcaption",
      {},
      part.directions.length > 1 ? key : null,
      h("span", { class: "legend" }, none ? `${format.count(none)} of ${format.count(part.n_affected)} (${format.share(none / part.n_affected)}) have no recourse within the budget and are not drawn.` : "Everybody has recourse within the budget."),
    ),
  );
  return element;
}
