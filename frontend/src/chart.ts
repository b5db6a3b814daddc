// Charts by Observable Plot: drawn once for each width, then only moved.
import * as Plot from "@observablehq/plot";
import { h, printing, svg } from "./dom";

export const COLOURS = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)"];
export const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 2"];

const PAPER = 680; // width of a chart in print: that of a page, so that its text is not shrunk

export function colour(i: number): string {
  return COLOURS[i % COLOURS.length];
}

export function dash(i: number): string {
  return DASHES[i % DASHES.length];
}

export type Drawn = (SVGSVGElement | HTMLElement) & Plot.Plot;

export interface Overlay {
  /** Where a cost stands on the horizontal axis. */
  x(cost: number): number;
  y(value: number): number;
  root: SVGSVGElement;
}

/** A figure that draws itself for its width, and again when that changes. */
export function figure(
  label: string,
  draw: (width: number) => Drawn,
  ready: (overlay: Overlay) => void = () => {},
): HTMLElement {
  const place = h("div", { class: "chart" });
  const element = h("figure", {}, place);
  let width = 0;
  const render = (wanted: number) => {
    if (!wanted || Math.abs(wanted - width) < 2) return;
    width = wanted;
    const drawn = draw(width);
    const root = (drawn.tagName.toLowerCase() === "svg" ? drawn : drawn.querySelector("svg")) as SVGSVGElement;
    drawn.querySelectorAll("style").forEach((style) => style.remove()); // its rules are in page.css: the policy allows no other
    root.querySelectorAll("[aria-label]").forEach((part) => part.removeAttribute("aria-label")); // the figure has one label
    root.setAttribute("role", "img");
    root.setAttribute("aria-label", label);
    place.replaceChildren(drawn);
    const x = drawn.scale("x");
    const y = drawn.scale("y");
    ready({ x: (v) => Number(x?.apply(v)), y: (v) => Number(y?.apply(v)), root });
  };
  new ResizeObserver((entries) => render(Math.floor(entries[0].contentRect.width))).observe(place);
  printing(element, () => render(PAPER), () => render(Math.floor(place.getBoundingClientRect().width)));
  return element;
}

/** A vertical rule that follows the limit; at the edge when the limit lies beyond the chart. */
export function rule(overlay: Overlay, top: number, bottom: number): (cost: number, end: number) => void {
  const line = svg("line", { class: "limit", y1: top, y2: bottom, x1: 0, x2: 0 });
  overlay.root.append(line);
  return (cost, end) => line.setAttribute("transform", `translate(${overlay.x(Math.min(cost, end))},0)`);
}

export { Plot };
