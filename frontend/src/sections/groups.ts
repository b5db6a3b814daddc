// Groups: the decisions with their intervals and margins, the measures, the exchange, checks and subgroups.
import { Plot, figure } from "../chart";
import { captioned, details, h, table } from "../dom";
import * as format from "../format";
import type { Audited, Decision } from "../types";
import type { View } from "../view";

export function groups(view: View): HTMLElement | null {
  const audit = view.data.audit;
  if (!audit) return null;
  return h(
    "section",
    { id: "groups", "aria-labelledby": "groups-head" },
    h("h2", { id: "groups-head" }, audit.finding),
    decisions(audit),
    h("h3", {}, "The verdict in words"),
    audit.verdict.map((line) => h("p", { class: "text" }, line)),
    h("h3", {}, "Each group"),
    measures(audit),
    exchange(audit),
    audit.checks.length
      ? h("div", {}, h("h3", {}, "Real, or an artefact of the search?"), table("The same comparison under other conditions", ["With", "Gaps keep their size", "Remark"], audit.checks.map((c) => [c.name, c.said, c.remark])))
      : null,
    audit.subgroups.length
      ? h("div", {}, h("h3", {}, "Subgroups with the worst recourse"), table("Found on one half of the affected, tested on the other", ["Subgroup", "Affected", "Score", "Score of the others", "p, corrected"], audit.subgroups.map((s) => [s.name, format.count(s.n), format.cost(s.score), format.cost(s.rest), chance(s.p)]), [1, 2, 3, 4]))
      : null,
    audit.warnings.length ? h("div", { class: "notes", role: "note" }, h("ul", {}, audit.warnings.map((w) => h("li", {}, w)))) : null,
  );
}

function text(d: object & { unit?: string }): (v: number) => string {
  return d.unit === "share" ? (v) => `${(v * 100).toFixed(1)} points` : (v) => format.cost(v);
}

function interval(d: { low: number | null; high: number | null; unit?: string }): string {
  if (d.low === null || d.high === null) return format.UNKNOWN;
  const like = Math.max(Math.abs(d.low), Math.abs(d.high)); // both ends as precise as the larger
  const said = d.unit === "share" ? text(d) : (v: number) => format.cost(v, format.UNKNOWN, like);
  return `${format.signed(d.low, said)} to ${format.signed(d.high, said)}`;
}

function decisions(audit: Audited): HTMLElement {
  if (!audit.decisions.length) return h("p", { class: "empty" }, "There is no comparison to show: it takes two groups that are large enough.");
  const known = audit.decisions.filter((d) => d.value !== null);
  return h(
    "div",
    {},
    h("h3", {}, "Decisions, the worst first"),
    known.length ? forest(known) : null,
    table(
      `One row per comparison: the group's score minus the other's, in units of cost. All ${(100 * (1 - audit.level)).toFixed(0)}% intervals hold at once.`,
      ["Group", "Against", "Gap", "Interval", "p, corrected", "Margin", "Conclusion"],
      audit.decisions.map((d) => [
        d.group,
        d.other,
        format.signed(d.value, text(d)),
        interval(d),
        chance(d.p),
        d.margin === null ? format.UNKNOWN : format.cost(d.margin),
        h("span", {}, h("span", { class: `badge ${d.tone}` }, d.conclusion), d.note ? ` ${d.note}` : ""),
      ]),
      [2, 3, 4, 5],
    ),
    details(
      "Gaps in coverage, average cost and rejections",
      table("The group's minus the other's", ["Group", "Against", "Measure", "Gap", "Interval", "p, corrected"], audit.gaps.map((g) => [g.group, g.other, g.measure, format.signed(g.value, text(g)), interval(g), chance(g.p)]), [3, 4, 5]),
    ),
  );
}

function chance(p: number | null): string {
  return p === null ? format.UNKNOWN : p < 0.001 ? "< 0.001" : p.toFixed(3);
}

function forest(rows: Decision[]): HTMLElement {
  const scale = 1;
  const name = (d: Decision) => `${format.short(d.group, 20)} − ${format.short(d.other, 20)}`;
  const drawn = rows.slice(0, 30).map((d, i) => ({ name: `${i + 1}. ${name(d)}`, value: d.value! * scale, low: (d.low ?? NaN) * scale, high: (d.high ?? NaN) * scale, margin: (d.margin ?? NaN) * scale, tone: d.tone }));
  const ends = drawn.flatMap((d) => [d.low, d.high, d.value, d.margin, -d.margin]).filter(Number.isFinite);
  const reach = Math.max(1e-9, ...ends.map(Math.abs)) * 1.08;
  const label = rows.map((d) => `${name(d)}: ${format.signed(d.value, text(d))}, ${d.conclusion}`).join("; ");
  return figure(label, (width) => {
    const narrow = width < 560;
    return Plot.plot({
      width,
      height: 52 + drawn.length * (narrow ? 46 : 34),
      marginLeft: narrow ? 8 : Math.min(320, width * 0.42),
      marginRight: 10,
      marginBottom: 40,
      x: { label: narrow ? "gap in score (cost)" : "gap in score (cost); band: the relevance margin", domain: [-reach, reach], grid: true, labelAnchor: "left" },
      y: { domain: drawn.map((d) => d.name), label: null, axis: narrow ? null : "left", tickSize: 0 },
      marks: [
        Plot.rect(drawn.filter((d) => Number.isFinite(d.margin)), { y: "name", x1: (d: { margin: number }) => -d.margin, x2: "margin", fill: "var(--band)", insetTop: 3, insetBottom: 3 }),
        Plot.ruleX([0], { stroke: "var(--ink)" }),
        Plot.ruleY(drawn.filter((d) => Number.isFinite(d.low)), { y: "name", x1: "low", x2: "high", stroke: "var(--ink)", strokeWidth: 2 }),
        Plot.dot(drawn, { y: "name", x: "value", r: 5, fill: (d: { tone: string }) => `var(--${d.tone})`, stroke: "var(--ink)", symbol: (d: { tone: string }) => ({ bad: "diamond", good: "circle", open: "triangle", unknown: "square" })[d.tone as "bad"] }),
        narrow ? Plot.text(drawn, { y: "name", frameAnchor: "left", text: "name", dy: -16, textAnchor: "start", fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 4 }) : null,
      ],
      symbol: { type: "identity" },
      color: { type: "identity" },
    }) as never;
  });
}

function measures(audit: Audited): HTMLElement {
  return table(
    `By ${audit.by}; cost and score in units of cost, people without recourse count as the full budget in the score`,
    ["Group", "Rows", "Affected", "Rejected", "Coverage", "Average cost", "Median", "Score", "Remark"],
    audit.groups.map((g) => [
      g.name,
      format.count(g.n),
      format.count(g.affected),
      format.share(g.rejection_rate),
      ...(g.affected
        ? [
            format.share(g.coverage),
            format.cost(g.average_cost, format.NONE),
            format.cost(g.quantiles[2], format.NONE),
            `${format.cost(g.score)}${g.score_interval[0] === null ? "" : ` (${format.cost(g.score_interval[0])} to ${format.cost(g.score_interval[1])})`}`,
          ]
        : ["–", "–", "–", "–"]),
      g.judged ? g.note : g.note || "too small to be compared",
    ]),
    [1, 2, 3, 4, 5, 6, 7],
  );
}

/** The exchange matrix: the worse, the further from the paper (on white: the darker), with a key. */
function exchange(audit: Audited): HTMLElement | null {
  const { of, to, measures: all } = audit.exchange;
  if (!of.length || !to.length) return null;
  const place = h("div");
  const draw = (measure: string) => {
    const values = all[measure];
    const known = values.flat().filter((v): v is number => typeof v === "number");
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const better = measure === "coverage";
    const worse = (v: number) => (high > low ? (better ? (high - v) / (high - low) : (v - low) / (high - low)) : 0);
    const show = (v: number | "none" | null) => (v === null ? format.UNKNOWN : v === "none" ? "none" : better ? format.share(v) : format.cost(v));
    place.replaceChildren(
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Exchanged directions" },
        h(
          "table",
          { class: "matrix" },
          captioned("Rows: whose directions. Columns: applied to whom, each person by directions that were chosen without them."),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Directions of"), to.map((name) => h("th", { scope: "col" }, name)))),
          h(
            "tbody",
            {},
            of.map((name, i) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, name),
                to.map((_, j) => {
                  const v = values[i][j];
                  const step = v === "none" ? 4 : v === null ? 0 : Math.round(worse(v) * 4);
                  return h("td", { class: `number w${step}` }, show(v), of[i] === to[j] ? h("span", { class: "sr" }, " (own)") : null);
                }),
              ),
            ),
          ),
        ),
      ),
      h("p", { class: "matrix-key" }, `best ${show(better ? high : low)} `, [0, 1, 2, 3, 4].map((step) => h("span", { class: `swatch w${step}`, "aria-hidden": "true" })), ` ${show(better ? low : high)} worst`),
    );
  };
  const names: Record<string, string> = { score: "score (cost)", coverage: "coverage", average_cost: "average cost" };
  const pick = h("select", { id: "exchange", change: () => draw(pick.value) }, Object.keys(all).map((m) => h("option", { value: m }, names[m] ?? m)));
  draw("score");
  return h("div", {}, h("h3", {}, "Exchanged directions"), h("p", { class: "tools" }, h("label", { for: "exchange" }, "Measure "), pick), place);
}

