// Recompute with other constraints, weights, groups or n: progress, the best so far, and cancel.
import { h, setText } from "../dom";
import * as format from "../format";
import { LOST, answer } from "../live";
import { Source } from "../source";
import { found, limitAt, position, type View } from "../view";

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
  const busy = (is: boolean) => {
    go.disabled = is;
    stop.disabled = !is;
  };
  /** Follow a computation to its end, whichever window began it; each better result becomes the page. */
  const follow = async (id: string, seen: number, whose = ""): Promise<void> => {
    job = id;
    busy(true);
    for (;;) {
      const now = await answer<Job>(live.request(`/api/jobs/${id}`));
      if (!section.isConnected) return; // the page was drawn anew, and its own section follows
      progress.max = Math.max(now.total, 1);
      progress.value = now.done;
      setText(says, whose + told(now));
      preliminary(now);
      if (now.version > seen) {
        const page = await live.request(`/api/jobs/${id}/page`);
        if (!page.ok) throw new Error(`The server answered ${page.status}.`);
        const source = Source.fromBinary(await page.arrayBuffer());
        if (section.isConnected) redraw(view, source, whose + told(now));
        return;
      }
      if (now.state !== "running") return busy(false);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  const running = async (whose = ""): Promise<void> => {
    const { job: now } = await answer<{ job: Job | null }>(live.request("/api/jobs"));
    if (!now) return;
    const seen = now.id === data.live!.job ? data.live!.version : 0;
    if (now.state === "running" || (seen && now.version > seen)) await follow(now.id, seen, whose);
    else if (seen && says.textContent) setText(says, told(now)); // it ended while its result was being drawn
  };
  const run = async () => {
    busy(true);
    setText(says, "Starting …");
    try {
      const begun = await live.request("/api/jobs", { method: "POST", body: JSON.stringify(asked()) });
      if (begun.status === 409) {
        setText(says, ((await begun.json()) as { error: string }).error);
        busy(false);
        await running("Another computation runs already; this is its progress. ");
      } else await follow((await answer<Job>(Promise.resolve(begun))).id, 0);
    } catch (error) {
      setText(says, error instanceof TypeError ? LOST : (error as Error).message);
      busy(false);
    }
  };
  running().catch(() => {}); // a lost connection is told once something is asked for
  const table = h("table", {}, h("caption", {}, "What may move, and what it costs"), h("thead", {}, h("tr", {}, ["Feature", "How it may move", "Weight"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, rows.map((r) => r.row)));
  const section = h(
    "section",
    { id: "again", "aria-labelledby": "again-head" },
    h("h2", { id: "again-head" }, "Recompute under other conditions"),
    h("p", { class: "tools" }, h("label", { for: "again-n" }, "Directions "), n, h("label", { for: "again-budget" }, " Budget "), budget, h("label", { for: "again-by" }, " Groups "), groups),
    h("div", { class: "scroll low", tabindex: 0, role: "region", "aria-label": "Constraints and weights" }, table),
    h("p", { class: "tools" }, go, stop, progress),
    says,
  );
  return section;
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

/** While a better result is being computed, the first screen says so. */
function preliminary(job: Job): void {
  const place = document.getElementById("preliminary");
  if (place) setText(place, job.state === "running" ? "This is the best result so far: a better one is still being looked for, and will be shown here." : "");
}

type Field = HTMLInputElement | HTMLSelectElement;

/** What a reader fills in: it outlives a better result. */
function fields(): Field[] {
  return [...document.querySelectorAll<Field>("#people :is(input, select), #groups select, #try :is(input, select), #again :is(input, select)")];
}

function touched(): Map<string, string> {
  const changed = (field: Field) => (field instanceof HTMLInputElement ? field.value !== field.defaultValue : !field.selectedOptions[0]?.defaultSelected && field.selectedIndex > 0);
  return new Map(fields().filter(changed).map((field) => [field.id, field.value]));
}

/** Show a better result in place of the present one: same limit on cost, same place on the page. */
function redraw(view: View, source: Source, said: string): void {
  const { state, name } = view;
  const next = source.data.explanations[name] ?? Object.values(source.data.explanations)[0];
  if (state.choice.limit !== null && next) {
    const cost = limitAt(view, position(view));
    state.choice.limit = cost >= next.budget ? null : found(source.values(next.grid.limits), cost);
  }
  const [top, focus, kept] = [window.scrollY, document.activeElement?.id, touched()];
  view.reload(source);
  for (const field of fields()) {
    const value = kept.get(field.id);
    if (value === undefined || value === field.value) continue;
    const now = field.value;
    field.value = value;
    if (field.value !== value) field.value = now; // a choice that is no longer there
    else for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind));
  }
  window.scrollTo(0, top);
  document.getElementById(focus || "again-go")?.focus({ preventScroll: true });
  const place = document.querySelector("#again .says");
  if (place) place.textContent = said;
}
