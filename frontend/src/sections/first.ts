// The first screen: the question, the answer in one sentence, one picture, and what it rests on.
import { Plot, colour, dash, figure } from "../chart";
import { h } from "../dom";
import * as format from "../format";
import type { Group } from "../types";
import { Curve, drawnGroups, leftOut, type View } from "../view";

export function first(view: View): HTMLElement {
  const { data } = view;
  const everybody = Object.values(data.explanations)[0];
  const ways = data.kind === "explanation" && everybody?.n_covered ? everybody.directions : [];
  return h(
    "header",
    { class: "first", id: "first" },
    h("p", { class: "facts" }, h("strong", {}, data.title), " · ", data.facts.join(" · ")),
    h("h1", {}, data.question),
    h(
      "p",
      { class: "answer" },
      data.badge ? h("span", { class: `badge ${data.tone ?? "open"}` }, data.badge) : null,
      " ",
      data.answer,
    ),
    h(
      "div",
      { class: ways.length ? "beside" : "" },
      ways.length
        ? h(
            "ol",
            { class: "ways", "aria-label": "The changes" },
            ways.slice(0, 5).map((way, i) =>
              h(
                "li",
                {},
                h("span", { class: `key k${i % 7}`, "aria-hidden": "true" }, String(i + 1)),
                h(
                  "span",
                  {},
                  way.words,
                  h("small", {}, ` Alone: ${format.share(way.coverage)}, average cost ${format.cost(way.average_cost, format.NONE)}`),
                ),
              ),
            ),
            ways.length > 5 ? h("li", {}, `and ${ways.length - 5} more below`) : null,
          )
        : null,
      picture(view),
    ),
    view.live ? h("p", { id: "preliminary", class: "aside", role: "status" }) : null,
    h("ul", { class: "rests" }, data.rests_line.map((line) => h("li", {}, line))),
    h("p", { class: "aside" }, data.not_said),
  );
}

function picture(view: View): HTMLElement | null {
  const audit = view.data.audit;
  if (audit) {
    const { drawn, more } = drawnGroups(audit);
    return drawn.length ? groupCosts(view, drawn, more) : null;
  }
  const parts = Object.entries(view.data.explanations).filter(([, part]) => part.n_covered > 0);
  if (!parts.length) return null;
  const end = Math.max(...parts.map(([, part]) => part.grid.end));
  const lines = parts.slice(0, 2).map(([name, part], i) => ({
    name,
    stroke: parts.length > 1 ? colour(i) : "var(--accent)",
    dash: dash(i),
    rows: steps(new Curve(view.source, part.total), part.grid.points, part.grid.step),
    part,
  }));
  const label = lines
    .map((l) => `${parts.length > 1 ? `${l.name}: ` : ""}${format.share(l.part.coverage)} of ${format.count(l.part.n_affected)} covered within the budget of ${format.cost(l.part.budget)}`)
    .join("; ");
  return figure(label, (width) =>
    Plot.plot({
      width,
      height: 190,
      marginLeft: 44,
      marginRight: parts.length > 1 ? 84 : 20,
      marginBottom: 38,
      x: { label: `limit on cost (budget ${lines[0].part.budget})`, domain: [0, end], ticks: 5 },
      y: { label: `covered (%)`, domain: [0, 100], ticks: 3, grid: true },
      marks: lines.flatMap((l, i) => [
        Plot.areaY(l.rows, { x: "limit", y: "share", curve: "step-after", fill: l.stroke, fillOpacity: 0.12 }),
        Plot.lineY(l.rows, { x: "limit", y: "share", curve: "step-after", stroke: l.stroke, strokeWidth: 2, strokeDasharray: l.dash }),
        parts.length > 1 ? Plot.text([l], { x: end, y: 92 - 22 * i, dx: 6, text: (r: { name: string }) => `${i ? "- -" : "—"} ${r.name}`, textAnchor: "start", fill: "var(--ink)", lineWidth: 7, textOverflow: "ellipsis" }) : null,
      ]),
    }) as never,
  );
}

/** Corners of a curve alone: drawing 1,000 points that do not move is work for nothing. */
export function steps(curve: { coverage(at: number): number }, points: number, step: number): { limit: number; share: number }[] {
  const found: { limit: number; share: number }[] = [];
  let before = -1;
  for (let i = 0; i < points; i++) {
    const share = curve.coverage(i) * 100;
    if (share !== before || i === points - 1) found.push({ limit: i * step, share });
    before = share;
  }
  return found;
}

/** Costs of each group: a histogram, and below it the average with its interval. */
function groupCosts(view: View, shown: Group[], more: number): HTMLElement {
  const rows = shown.flatMap((g, i) =>
    g.histogram.shares.map((share, j) => ({
      group: g.name,
      share: share * 100,
      x1: Math.max(g.histogram.edges[j], 0),
      x2: g.histogram.edges[j + 1],
      fill: colour(i),
    })),
  );
  const budget = Object.values(view.data.explanations)[0]?.budget ?? 10;
  const edge = Math.max(...shown.map((g) => g.histogram.edges[g.histogram.edges.length - 1]));
  const some = shown.some((g) => g.histogram.none > 0);
  const room = some ? edge * 0.16 : 0;
  const none = shown.map((g, i) => ({ group: g.name, share: g.histogram.none * 100, fill: colour(i) }));
  const means = shown.map((g) => ({
    group: g.name,
    score: g.score,
    low: g.score_interval[0],
    high: g.score_interval[1],
  }));
  const label = `Cost by group. ${shown
    .map((g) => `${g.name}: ${format.cost(g.score)} on average, ${format.share(g.histogram.none)} without recourse`)
    .join("; ")}`;
  const element = figure(label, (width) =>
    Plot.plot({
      width,
      height: 60 + (some ? 76 : 64) * shown.length,
      marginLeft: 8,
      marginRight: 8,
      marginTop: 16,
      marginBottom: 38,
      x: { label: `cost of recourse (budget ${budget})`, labelAnchor: "left", domain: [0, edge + room], ticks: 6 },
      y: { axis: null, domain: [0, Math.max(...rows.map((r) => r.share), ...(some ? none.map((r) => r.share) : [])) * (some ? 1.9 : 1.3)] },
      fy: { domain: shown.map((g) => g.name), axis: null, padding: 0.12 },
      marks: [
        Plot.ruleY([0], { stroke: "var(--faint)" }),
        Plot.rectY(rows, { fy: "group", x1: "x1", x2: "x2", y: "share", fill: "fill", fillOpacity: 0.75, insetRight: 1 }),
        !some ? null : Plot.rectY(none, { fy: "group", x1: edge + room * 0.3, x2: edge + room * 0.8, y: "share", fill: "none", stroke: "fill", strokeWidth: 1.5, strokeDasharray: "3 2" }),
        !some ? null : Plot.text(none, { fy: "group", x: edge + room, y: "share", dy: -7, textAnchor: "end", text: (r: { share: number }) => `${r.share.toFixed(1)}% none`, fill: "var(--ink)" }),
        Plot.ruleY(means, { fy: "group", y: 0, x1: "low", x2: "high", stroke: "var(--ink)", strokeWidth: 3 }),
        Plot.dot(means, { fy: "group", x: "score", y: 0, r: 5, fill: "var(--ink)", stroke: "var(--paper)" }),
        Plot.text(shown, {
          fy: "name",
          frameAnchor: "top-right",
          text: (g: Group) => `${format.short(g.name, width < 500 ? 18 : 60)}: ${format.cost(g.score)} (${format.cost(g.score_interval[0])} to ${format.cost(g.score_interval[1])})`,
          fill: "var(--ink)",
          fontWeight: 600,
        }),
      ],
    }) as never,
  );
  element.append(
    h(
      "figcaption",
      {},
      h("span", {}, "Bars: people by cost. Dot and line: the group's mean and its interval."),
      h("span", {}, some ? `Dashed: no recourse within the budget; they count as the full budget of ${budget} in the mean.` : `Everybody has recourse within the budget of ${budget}.`),
      more > 0 ? h("span", {}, leftOut(more)) : null,
    ),
  );
  return element;
}

export { colour, dash };
