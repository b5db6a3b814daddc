// Recompute with other constraints, weights, groups or n: progress, the best so far, and cancel.
import { h, replace, setText } from "../dom";
import * as format from "../format";
import { answer } from "../live";
import { Source } from "../source";
import type { View } from "../view";

interface Job {
  id: string;
  state: "running" | "done" | "cancelled" | "failed" | "timed out";
  stage: string;
  done: number;
  total: number;
  message: string;
  best: { coverage: number; average_cost: number | null; score: number } | null;
  version: number;
}

export function recompute(view: View): HTMLElement | null {
  const { live, data } = view;
  if (!live || !data.live?.recompute) return null;
  const n = h("input", { id: "again-n", type: "number", min: 1, max: 20, value: data.live.n_directions });
  const budget = h("input", { id: "again-budget", type: "number", min: 0.1, step: "any", value: view.part?.budget ?? 10 });
  const groups = h("select", { id: "again-by" }, h("option", { value: "" }, "no groups"), data.live.groups.map((name) => h("option", { value: name, selected: data.audit?.by === name }, name)));
  const rows = data.features.map((f, i) => {
    const choices = [["free", "may move"], ["fixed", "held fixed"], ...(f.kind === "categorical" ? [] : [["rise", "may only rise"], ["fall", "may only fall"]])];
    const now = f.fixed ? "fixed" : f.sense > 0 ? "rise" : f.sense < 0 ? "fall" : "free";
    const limit = h("select", { id: `may-${i}`, "aria-label": `${f.label}: how it may move` }, choices.map(([value, text]) => h("option", { value, selected: value === now }, text)));
    const weight = h("input", { id: `weight-${i}`, type: "number", min: 0.01, step: "any", value: f.weight, "aria-label": `${f.label}: weight of its cost` });
    return { f, limit, weight, row: h("tr", {}, h("th", { scope: "row" }, f.label), h("td", {}, limit), h("td", {}, weight)) };
  });
  const progress = h("progress", { "aria-label": "Progress", max: 1, value: 0 });
  const says = h("p", { role: "status", class: "says" });
  const go = h("button", { type: "button", id: "again-go", class: "primary", click: () => void run() }, "Recompute");
  const stop = h("button", { type: "button", id: "again-stop", disabled: true, click: () => void cancel() }, "Cancel, and keep the best so far");
  let job = "";
  const asked = () => ({
    n_directions: Number(n.value),
    budget: Number(budget.value),
    by: groups.value || null,
    features: Object.fromEntries(rows.map(({ f, limit, weight }) => [f.name, { may: limit.value, weight: Number(weight.value) }])),
  });
  const cancel = async () => {
    stop.disabled = true;
    setText(says, "Stopping …");
    await answer(live.request(`/api/jobs/${job}`, { method: "DELETE" })).catch((error: Error) => setText(says, error.message));
  };
  const run = async () => {
    go.disabled = true;
    stop.disabled = false;
    try {
      const started = await answer<Job>(live.request("/api/jobs", { method: "POST", body: JSON.stringify(asked()) }));
      job = started.id;
      let version = 0;
      for (;;) {
        const now = await answer<Job>(live.request(`/api/jobs/${job}`));
        progress.max = Math.max(now.total, 1);
        progress.value = now.done;
        setText(says, told(now));
        if (now.version > version) {
          version = now.version;
          if (now.state === "running") preview(best, now);
        }
        if (now.state !== "running") {
          if (now.version) {
            const page = await live.request(`/api/jobs/${job}/page`);
            if (!page.ok) throw new Error(`The server answered ${page.status}.`);
            view.state.choice.limit = null;
            const text = told(now);
            view.reload(Source.fromBinary(await page.arrayBuffer()));
            const place = document.querySelector("#again .says");
            if (place) place.textContent = text;
            document.getElementById("again-go")?.focus({ preventScroll: true });
            return;
          }
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    } catch (error) {
      setText(says, (error as Error).message);
    }
    go.disabled = false;
    stop.disabled = true;
  };
  const best = h("div", { class: "best" });
  const table = h("table", {}, h("caption", {}, "What may move, and what it costs"), h("thead", {}, h("tr", {}, ["Feature", "How it may move", "Weight"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, rows.map((r) => r.row)));
  return h(
    "section",
    { id: "again", "aria-labelledby": "again-head" },
    h("h2", { id: "again-head" }, "Recompute under other conditions"),
    h("p", { class: "tools" }, h("label", { for: "again-n" }, "Directions "), n, h("label", { for: "again-budget" }, " Budget "), budget, h("label", { for: "again-by" }, " Groups "), groups),
    h("div", { class: "scroll low", tabindex: 0, role: "region", "aria-label": "Constraints and weights" }, table),
    h("p", { class: "tools" }, go, stop, progress),
    says,
    best,
  );
}

function told(job: Job): string {
  const best = job.best ? ` Best so far: ${format.share(job.best.coverage)} covered at an average cost of ${format.cost(job.best.average_cost, format.NONE)}.` : "";
  const state = {
    running: `${job.stage}: ${format.count(job.done)} of ${format.count(job.total)}.${best}`,
    done: `Done.${best}`,
    cancelled: job.version ? `Cancelled; the best so far is shown.${best}` : "Cancelled before there was a result; what was shown stays.",
    failed: job.message,
    "timed out": `${job.message}${best}`,
  }[job.state];
  return state;
}

/** The best so far as a bar of coverage that grows; the whole page follows when the work is done. */
function preview(place: HTMLElement, job: Job): void {
  if (!job.best) return;
  const bar = h("i");
  bar.style.transform = `scaleX(${job.best.coverage})`;
  replace(place, h("span", { class: "meter", role: "img", "aria-label": `Best so far: ${format.share(job.best.coverage)} covered` }, bar));
}
