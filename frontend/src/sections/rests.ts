// What it rests on: settings, constraints, origin, fingerprints, warnings, and what computes it again.
import { h } from "../dom";
import type { View } from "../view";

export function rests(view: View): HTMLElement {
  const { pairs, notes, command } = view.data.rests;
  const copied = h("span", { role: "status", class: "aside" });
  const copy = h("button", { type: "button", click: () => void say(copied, command) }, "Copy");
  return h(
    "section",
    { id: "rests", "aria-labelledby": "rests-head" },
    h("h2", { id: "rests-head" }, "What it rests on"),
    notes.length ? h("div", { class: "notes", role: "note" }, h("h3", {}, "Remarks"), h("ul", {}, notes.map((note) => h("li", {}, note)))) : null,
    h("dl", {}, pairs.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)])),
    h("h3", {}, "To compute it again"),
    command
      ? h("div", { class: "command" }, h("pre", { tabindex: 0 }, h("code", {}, command)), copy, copied)
      : h("p", {}, "Not recorded. A report by globece report holds everything that it takes, and globece verify-report does it."),
  );
}

async function say(place: HTMLElement, text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    place.textContent = " Copied.";
  } catch {
    place.textContent = " This browser does not let the page copy; select the text instead.";
  }
}
