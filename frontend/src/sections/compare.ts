// Two results side by side, with paired intervals where the rows are the same.
import { h, table } from "../dom";
import * as format from "../format";
import type { View } from "../view";

export function compare(view: View): HTMLElement | null {
  const found = view.data.comparison;
  if (!found) return null;
  const show = (unit: string, value: number | string | null) =>
    value === null ? format.UNKNOWN : typeof value === "string" ? value : unit === "share" ? format.share(value) : format.cost(value);
  const delta = (unit: string, like?: number) => (v: number) => (unit === "share" ? `${(v * 100).toFixed(1)} points` : format.cost(v, format.UNKNOWN, like));
  const interval = (unit: string, low: number, high: number) => {
    const said = delta(unit, Math.max(Math.abs(low), Math.abs(high)));
    return `${format.signed(low, said)} to ${format.signed(high, said)}`;
  };
  return h(
    "section",
    { id: "compare", "aria-labelledby": "compare-head" },
    h("h2", { id: "compare-head" }, found.text),
    table(
      `${found.names[1]} against ${found.names[0]}${found.paired ? ", paired by row" : ", not paired: the rows differ"}`,
      ["Measure", found.names[0], found.names[1], "Difference", "Interval", "In words"],
      found.rows.map((r) => [
        r.measure,
        show(r.unit, r.a),
        show(r.unit, r.b),
        r.unit === "text" ? "" : format.signed(r.difference, delta(r.unit)),
        r.low === null || r.high === null ? "" : interval(r.unit, r.low, r.high),
        r.said,
      ]),
      [1, 2, 3, 4],
    ),
    found.notes.length ? h("div", { class: "notes" }, h("ul", {}, found.notes.map((note) => h("li", {}, note)))) : null,
  );
}
