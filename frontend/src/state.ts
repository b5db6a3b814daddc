// What the reader has chosen: the limit on cost, the part shown, the section. The address holds it, so a link restores it.

export interface Choice {
  limit: number | null; // position on the grid
  part: string;
  section: string;
}

export type Listener = (choice: Choice) => void;

export class State {
  choice: Choice = { limit: null, part: "", section: "" };
  private listeners: Listener[] = [];
  private frame = 0;
  private written = 0;

  constructor(private readonly keepsAddress: boolean) {
    if (!keepsAddress) return;
    const given = new URLSearchParams(location.hash.slice(1));
    const limit = Number(given.get("limit"));
    this.choice.limit = given.has("limit") && Number.isFinite(limit) && limit >= 0 ? Math.round(limit) : null;
    this.choice.part = given.get("show") ?? "";
    this.choice.section = given.get("section") ?? "";
  }

  clear(): void {
    this.listeners = [];
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** Change the choice; everything that follows it is updated once, before the next frame is drawn. */
  set(change: Partial<Choice>): void {
    Object.assign(this.choice, change);
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.flush();
    });
  }

  flush(): void {
    for (const listener of this.listeners) listener(this.choice);
    if (!this.keepsAddress) return;
    clearTimeout(this.written);
    this.written = window.setTimeout(() => this.write(), 250);
  }

  private write(): void {
    const shown = new URLSearchParams();
    if (this.choice.limit !== null) shown.set("limit", String(this.choice.limit));
    if (this.choice.part) shown.set("show", this.choice.part);
    if (this.choice.section) shown.set("section", this.choice.section);
    const text = shown.toString();
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // a frame without an origin may not change its address; nothing else depends on it
    }
  }
}
