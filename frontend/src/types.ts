// What the page is given: the plain data that src/globece/page builds. Arrays are references into its buffers.

export interface Ref {
  array: number;
  type: "f64" | "f32" | "u32" | "u8" | "i16";
  length: number;
}

export interface Series {
  n: number;
  count: Ref;
  sum: Ref;
}

export interface Move {
  feature: string;
  label: string;
  unit: string;
  sign: 1 | -1;
  whole: boolean;
  per_k: number;
  most: number;
  cost: number;
  within: Ref;
}

export interface Rule {
  feature: string;
  label: string;
  to: string;
  cost: number;
  from: { value: string; k: number; n: number }[];
}

export interface ChartRow {
  lines: [string, string, boolean][];
  new_coverage: number;
  new_cost: number | null;
  coverage: number;
  cost: number | null;
}

export interface Direction {
  words: string;
  coverage: number;
  average_cost: number | null;
  alone: Series;
  takers: Series;
  reach: Ref;
  by_k: { most: number; steps: number; count: Ref; sum: Ref };
  moves: Move[];
  more_moves: number;
  rules: Rule[];
  chart: ChartRow[];
  groups: { name: string; n: number; count: number }[];
}

export interface People {
  listed: boolean;
  n: number;
  sampled?: boolean;
  row?: Ref;
  direction?: Ref;
  cost?: Ref;
  costs?: Ref[];
  features?: string[];
  texts?: string[];
  change_start?: Ref;
  change_feature?: Ref;
  change_before?: Ref;
  change_after?: Ref;
}

export interface Explained {
  n_rows: number;
  n_affected: number;
  n_unknown: number;
  n_covered: number;
  coverage: number;
  average_cost: number | null;
  score: number | null;
  budget: number;
  n_directions: number;
  grid: { step: number; points: number; end: number; limits: Ref };
  total: Series;
  directions: Direction[];
  histogram: { edges: number[]; counts: number[][]; none: number };
  people: People;
}

export interface Group {
  name: string;
  n: number;
  affected: number;
  rejection_rate: number | null;
  coverage: number | null;
  average_cost: number | null;
  score: number | null;
  score_interval: [number | null, number | null];
  quantiles: (number | null)[];
  judged: boolean;
  whole: boolean;
  note: string;
  series: Series | null;
  curve: { n: number; limit: Ref; share: Ref; low: Ref; high: Ref } | null;
  histogram: { edges: number[]; shares: number[]; none: number };
}

export interface Decision {
  unit?: undefined;
  group: string;
  other: string;
  conclusion: string;
  tone: "bad" | "open" | "good" | "unknown";
  value: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
  margin: number | null;
  power: number | null;
  note: string;
}

export interface Gap {
  group: string;
  other: string;
  measure: string;
  unit: "cost" | "share";
  value: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
}

export interface Audited {
  by: string;
  members: boolean;
  finding: string;
  verdict: string[];
  level: number;
  limits: Ref;
  gaps: Gap[];
  groups: Group[];
  decisions: Decision[];
  exchange: { of: string[]; to: string[]; measures: Record<string, (number | "none" | null)[][]> };
  checks: { name: string; said: string; remark: string }[];
  subgroups: { name: string; n: number; score: number | null; rest: number | null; p: number | null }[];
  warnings: string[];
}

export interface Compared {
  names: [string, string];
  text: string;
  paired: boolean;
  rows: {
    measure: string;
    unit: "cost" | "share" | "text";
    a: number | string | null;
    b: number | string | null;
    difference: number | null;
    low: number | null;
    high: number | null;
    said: string;
  }[];
  notes: string[];
}

export interface Feature {
  name: string;
  label: string;
  unit: string;
  kind: "continuous" | "categorical" | "ordinal";
  fixed: boolean;
  movable: boolean;
  sense: number;
  whole: boolean;
  weight: number;
  values?: string[];
  ids?: string[];
  range?: [number | null, number | null];
  observed?: [number, number];
}

export interface Data {
  format: string;
  version: number;
  kind: "explanation" | "audit" | "comparison";
  title: string;
  facts: string[];
  people: string;
  cost_unit: string;
  question: string;
  answer: string;
  badge: string;
  tone?: "bad" | "open" | "good" | "unknown";
  rests_line: string[];
  not_said: string;
  features: Feature[];
  explanations: Record<string, Explained>;
  audit?: Audited;
  comparison?: Compared;
  rests: { pairs: [string, string][]; notes: string[]; command: string };
  live?: { groups: string[]; n_directions: number; recompute: boolean; limit_s: number; job: string; version: number };
}
