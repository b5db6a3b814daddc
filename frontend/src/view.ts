// What the sections share: the data, the reader's choice, and the part of the data that is shown.
import type { Source, Values } from "./source";
import type { State } from "./state";
import type { Audited, Data, Explained, Group, Series } from "./types";

export interface View {
  source: Source;
  data: Data;
  state: State;
  part: Explained;
  name: string;
  live: Live | null;
  reload(source: Source): void;
}

export interface Live {
  token: string;
  request(path: string, options?: RequestInit): Promise<Response>;
}

export class Curve {
  readonly count: Values;
  readonly sum: Values;
  readonly n: number;

  constructor(source: Source, series: Series) {
    this.count = source.values(series.count);
    this.sum = source.values(series.sum);
    this.n = series.n;
  }

  coverage(at: number): number {
    return this.n ? this.count[this.index(at)] / this.n : NaN;
  }

  covered(at: number): number {
    return this.count[this.index(at)];
  }

  average(at: number): number {
    const i = this.index(at);
    return this.count[i] ? this.sum[i] / this.count[i] : NaN;
  }

  private index(at: number): number {
    return Math.min(at, this.count.length - 1);
  }
}

export const MOST_GROUPS = 6; // drawn; the tables have all

/** The groups that charts draw, in one order and so in one colour each: of many, those that pay most. */
export function drawnGroups(audit: Audited): { drawn: Group[]; more: number } {
  const judged = audit.groups.filter((g) => g.judged && !g.whole && g.affected > 0);
  if (judged.length > MOST_GROUPS) judged.sort((a, b) => (b.score ?? 0) - (a.score ?? 0));
  return { drawn: judged.slice(0, MOST_GROUPS), more: Math.max(judged.length - MOST_GROUPS, 0) };
}

/** Which groups a chart leaves out, in words. */
export function leftOut(more: number): string {
  return `Drawn are the ${MOST_GROUPS} groups that pay most; ${more} more ${more === 1 ? "is" : "are"} in the table of groups.`;
}

/** The position of the whole budget among the limits. */
export function last(part: Explained): number {
  return part.grid.limits.length - 1;
}

export function position(view: View): number {
  const chosen = view.state.choice.limit;
  return chosen === null ? last(view.part) : Math.min(chosen, last(view.part));
}

export function limitAt(view: View, at: number): number {
  return view.source.values(view.part.grid.limits)[at];
}

/** The position of the largest limit that is no more than a cost. */
export function positionOf(view: View, cost: number): number {
  return found(view.source.values(view.part.grid.limits), cost + view.part.grid.step * 1e-6);
}

/** The position of the largest of some rising limits that is no more than a cost. */
export function found(limits: ArrayLike<number>, cost: number): number {
  const near = cost * (1 + 1e-9);
  let [low, high] = [0, limits.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (limits[middle] <= near) low = middle;
    else high = middle - 1;
  }
  return low;
}
