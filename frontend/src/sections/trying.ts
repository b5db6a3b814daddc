// Try it yourself: one's own change, and whom it helps. The server asks the model; an answer takes milliseconds.
import { h, named, replace, table } from "../dom";
import * as format from "../format";
import { answer } from "../live";
import type { Feature } from "../types";
import type { View } from "../view";

interface Benefit {
  name: string;
  n: number;
  affected: number;
  flipped: number;
  average_cost: number | null;
  harmed: number;
}

export function trying(view: View): HTMLElement | null {
  if (!view.live || !view.data.live?.recompute) return null;
  const result = h("div", { class: "result", role: "status" }, h("p", { class: "aside" }, "Move a bar or pick a value to see whom that helps."));
  const action = new Map<string, number | string>();
  let sent = 0;
  let busy = false;
  let waiting = false;
  const mode = h("select", { id: "try-mode", change: () => void ask() }, h("option", { value: "fixed" }, "everybody takes all of it"), h("option", { value: "scaled" }, "everybody goes as far as it takes"));
  const ask = async (): Promise<void> => {
    if (!action.size) return replace(result, h("p", { class: "aside" }, "Nothing is changed."));
    if (busy) {
      waiting = true;
      return;
    }
    busy = true;
    const mine = ++sent;
    try {
      const found = await answer<{ groups: Benefit[]; ms: number }>(
        view.live!.request("/api/try", { method: "POST", body: JSON.stringify({ action: Object.fromEntries(action), mode: mode.value }) }),
      );
      if (mine === sent) show(result, found.groups, found.ms);
    } catch (error) {
      replace(result, h("p", { class: "error" }, (error as Error).message));
    }
    busy = false;
    if (waiting) {
      waiting = false;
      void ask();
    }
  };
  const movable = view.data.features.filter((f) => f.movable);
  const moved = new Set(view.part.directions.flatMap((d) => [...d.moves.map((m) => m.feature), ...d.rules.map((r) => r.feature)]));
  movable.sort((a, b) => Number(moved.has(b.name)) - Number(moved.has(a.name)));
  const controls = movable.slice(0, 40).map((f) => control(f, view.data.features.indexOf(f), action, () => void ask()));
  const reset = h("button", { type: "button", click: () => { action.clear(); section.querySelectorAll("input[type=range]").forEach((e) => { (e as HTMLInputElement).value = "0"; e.dispatchEvent(new Event("input")); }); section.querySelectorAll<HTMLSelectElement>("select[data-feature]").forEach((e) => (e.value = "")); action.clear(); void ask(); } }, "Reset");
  const section = h(
    "section",
    { id: "try", "aria-labelledby": "try-head" },
    h("h2", { id: "try-head" }, "Try it yourself: whom would your own change help?"),
    h("p", { class: "tools" }, h("label", { for: "try-mode" }, "Who moves "), mode, reset),
    h("div", { class: "beside" }, h("div", { class: "controls" }, controls, movable.length > 40 ? h("p", {}, `${movable.length - 40} more features can move; the 40 that the directions use first are here.`) : null), result),
  );
  return section;
}

function control(f: Feature, i: number, action: Map<string, number | string>, changed: () => void): HTMLElement {
  const id = `try-${i}`;
  if (f.kind === "categorical") {
    const select = h("select", { id, "data-feature": f.name, change: () => { if (select.value === "") action.delete(f.name); else action.set(f.name, f.ids![Number(select.value)]); changed(); } }, h("option", { value: "" }, "as it is"), f.values!.map((v, j) => h("option", { value: String(j) }, `becomes ${v}`)));
    return h("p", {}, h("label", { for: id }, named(f.label)), select);
  }
  const ordinal = f.kind === "ordinal";
  const span = ordinal ? f.values!.length - 1 : f.observed![1] - f.observed![0];
  const unit = ordinal ? "steps" : f.unit;
  const step = ordinal || f.whole ? 1 : span / 100;
  const output = h("output", { for: id, class: "value" }, "0");
  const slider = h("input", {
    id,
    type: "range",
    min: f.sense > 0 ? 0 : -span,
    max: f.sense < 0 ? 0 : span,
    step,
    value: 0,
    input: () => {
      const raw = Number(slider.value);
      const value = Math.abs(raw) < step / 2 ? 0 : raw;
      output.textContent = value ? format.withUnit(format.signed(value, (v) => (ordinal || f.whole ? format.count(v) : v.toLocaleString("en", { maximumSignificantDigits: 3 }))), unit) : "0";
      slider.setAttribute("aria-valuetext", output.textContent);
      if (value) action.set(f.name, value);
      else action.delete(f.name);
      changed();
    },
  });
  return h("p", {}, h("label", { for: id }, named(f.label)), slider, output);
}

function show(place: HTMLElement, found: Benefit[], ms: number): void {
  const overall = found[found.length - 1];
  const text = overall.flipped
    ? `It helps ${format.count(overall.flipped)} of ${format.count(overall.affected)} (${format.share(overall.flipped / overall.affected)}), at an average cost of ${format.cost(overall.average_cost)}.`
    : `It helps none of the ${format.count(overall.affected)} within the budget.`;
  const harm = overall.harmed ? ` ${format.count(overall.harmed)} others would lose the favourable outcome by it.` : "";
  replace(
    place,
    h("p", { class: "answer" }, text, harm),
    table("By group", ["Group", "Affected", "Helped", "Share", "Average cost", "Others who lose it"], found.map((b) => [b.name, format.count(b.affected), format.count(b.flipped), format.share(b.affected ? b.flipped / b.affected : NaN), format.cost(b.average_cost, format.NONE), format.count(b.harmed)]), [1, 2, 3, 4, 5]),
    h("p", { class: "aside" }, `Answered in ${ms.toFixed(0)} ms.`),
  );
}
