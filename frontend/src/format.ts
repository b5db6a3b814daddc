// Numbers as text: at most three significant digits, units always, and "unknown" where nothing is known.

export const NONE = "none";
export const UNKNOWN = "unknown";

export function cost(value: number | null | undefined, missing = UNKNOWN, like?: number): string {
  if (value === null || value === undefined || Number.isNaN(value)) return missing;
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(like ?? value);
  return value.toLocaleString("en", {
    minimumFractionDigits: size < 10 ? 2 : size < 100 ? 1 : 0,
    maximumFractionDigits: size < 10 ? (size < 0.1 && size > 0 ? 4 : 2) : size < 100 ? 1 : 0,
  });
}

export function share(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  const percent = value * 100;
  return `${percent.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })}%`;
}

export function signed(value: number | null, text: (v: number) => string): string {
  if (value === null || Number.isNaN(value)) return UNKNOWN;
  return `${value < 0 ? "−" : "+"}${text(Math.abs(value))}`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** A size that is never rounded down, so that "at most" stays true. */
export function atMost(value: number): string {
  if (value === 0 || Number.isInteger(value)) return value.toLocaleString("en");
  const places = Math.max(2 - Math.floor(Math.log10(value)), 0);
  const unit = 10 ** -places;
  const up = Math.ceil((value / unit) * (1 - 1e-12)) * unit;
  return up.toLocaleString("en", { maximumFractionDigits: places });
}

/** A name that fits beside a chart; the tables have it whole. */
export function short(name: string, most = 32): string {
  const letters = [...name];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
}

export function withUnit(text: string, unit: string): string {
  return unit ? `${text} ${unit}` : text;
}

export function plural(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
