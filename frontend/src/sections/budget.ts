// The budget: one slider that everything below follows.
import { h, setText } from "../dom";
import * as format from "../format";
import { Curve, limitAt, position, positionOf, type View } from "../view";

export function budget(view: View): HTMLElement {
  const { part, state, data } = view;
  const total = new Curve(view.source, part.total);
  const most = Math.round(part.budget / part.grid.step);
  const tenth = Math.max(1, Math.round(most / 100)); // a hundredth of the budget: 0.1 of the paper's 10
  const steps = (at: number) => Math.round(limitAt(view, at) / part.grid.step);
  const choose = (value: number) => state.set({ limit: positionOf(view, Math.min(Math.max(value, 0), most) * part.grid.step) });
  const slider = h("input", {
    type: "range",
    id: "limit",
    min: 0,
    max: most,
    step: 1,
    value: steps(position(view)),
    "aria-describedby": "limit-says",
    input: () => choose(Number(slider.value)),
    keydown: (event: KeyboardEvent) => {
      const now = Number(slider.value);
      const to = { ArrowLeft: now - tenth, ArrowDown: now - tenth, ArrowRight: now + tenth, ArrowUp: now + tenth, PageDown: now - 10 * tenth, PageUp: now + 10 * tenth, Home: 0, End: most }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      slider.value = String(Math.min(Math.max(to, 0), most));
      choose(to);
    },
  });
  const value = h("output", { for: "limit", class: "value" });
  const coverage = h("b");
  const average = h("b");
  const bar = h("span", { class: "filled" });
  const parts = Object.keys(data.explanations);
  const switcher =
    parts.length > 1
      ? h(
          "label",
          { class: "switch" },
          data.kind === "comparison" ? "Model " : "Directions of ",
          h(
            "select",
            { id: "part", change: (event: Event) => state.set({ part: (event.target as HTMLSelectElement).value }) },
            parts.map((name) => h("option", { value: name, selected: name === view.name }, name)),
          ),
        )
      : null;
  const update = () => {
    const at = position(view);
    if (document.activeElement !== slider || state.choice.limit === null) slider.value = String(steps(at));
    const limit = format.cost(limitAt(view, at));
    setText(value, limit);
    setText(coverage, format.share(total.coverage(at)));
    setText(average, format.cost(total.average(at), format.NONE));
    bar.style.transform = `scaleX(${total.coverage(at) || 0})`;
    slider.setAttribute(
      "aria-valuetext",
      `a cost of at most ${limit}: ${format.share(total.coverage(at))} covered, average cost ${format.cost(total.average(at), format.NONE)}`,
    );
  };
  state.listen(update);
  update();
  return h(
    "div",
    { class: "budget", id: "budget", role: "group", "aria-label": "Budget" },
    h("label", { for: "limit" }, "If nobody pays more than "),
    value,
    slider,
    h("p", { id: "limit-says", class: "says" }, coverage, " are covered, at an average cost of ", average),
    h("span", { class: "meter", "aria-hidden": "true" }, bar),
    switcher,
  );
}
