// The connection of a live page to its own server: a token from the address, kept for this window alone.
import { h } from "./dom";
import { Source } from "./source";
import type { Live } from "./view";

const KEY = "globece-token";
export const LOST = "The connection to the server is lost. What is shown stays; start globece serve again to go on.";

export async function connect(root: HTMLElement, ready: (source: Source, live: Live) => void): Promise<void> {
  const live = session();
  if (!live) return ask(root, "This page needs its token", "Open the address that globece serve printed: it ends with the token.");
  let shown = "";
  for (;;) {
    const answer = await attempt(live, root);
    if (!answer) return;
    if (answer.status === 200) return ready(Source.fromBinary(await answer.arrayBuffer()), live);
    if (answer.status !== 202) {
      const said = (await answer.json().catch(() => ({}))) as { error?: string };
      const token = answer.status === 401;
      if (token) sessionStorage.removeItem(KEY);
      return ask(root, token ? "The token is not this server's" : "The server cannot show this", said.error ?? `It answered ${answer.status}.`);
    }
    const { stage } = (await answer.json()) as { stage: string };
    if (stage !== shown) ask(root, "The first result is on its way", `${stage} …`);
    shown = stage;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

function session(): Live | null {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token") ?? sessionStorage.getItem(KEY);
  if (!token) return null;
  sessionStorage.setItem(KEY, token);
  given.delete("token");
  history.replaceState(null, "", given.size ? `#${given}` : location.pathname);
  return {
    token,
    request: (path, options = {}) => {
      const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
      if (options.body) headers["Content-Type"] = "application/json";
      return fetch(path, { ...options, headers, cache: "no-store" });
    },
  };
}

async function attempt(live: Live, root: HTMLElement): Promise<Response | null> {
  try {
    return await live.request("/api/page");
  } catch {
    ask(root, "The server does not answer", "It may have been stopped. Start globece serve again, and open the address that it prints.");
    return null;
  }
}

function ask(root: HTMLElement, title: string, text: string): void {
  root.replaceChildren(h("main", {}, h("header", { class: "first" }, h("h1", {}, title), h("p", { role: "status" }, text))));
}

/** What a server's answer says, or what went wrong with the connection. */
export async function answer<T>(asked: Promise<Response>): Promise<T> {
  let response: Response;
  try {
    response = await asked;
  } catch {
    throw new Error(LOST);
  }
  const body = (await response.json().catch(() => ({}))) as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `The server answered ${response.status}.`);
  return body;
}
