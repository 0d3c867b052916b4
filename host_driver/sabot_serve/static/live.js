// What every page shares: the stream of views, the age of what it shows, acts, small DOM helpers.

export const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";
const WORDS = JSON.parse(document.getElementById("words").textContent);
const STALE_MS = 2000;
const RETRY_MS = [300, 700, 1500, 3000];

export function say(name, values = {}) {
  return (WORDS[name] ?? name).replace(/%\((\w+)\)s/g, (_, key) => values[key] ?? "");
}

export function byId(id) {
  return document.getElementById(id);
}

// Sets text only where it differs: focus, selection and a pressed button stay as they are.
export function put(element, text) {
  const wanted = text === null || text === undefined ? "" : String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function utc(seconds) {
  return seconds ? new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ") : "";
}

export function cells(...texts) {
  return make("tr", {}, ...texts.map((each) => make("td", {}, each instanceof Node ? each : String(each ?? ""))));
}

// Makes the children of an element those of a list: by key, those that are there are updated in place.
export function sync(parent, list, keyOf, create, update) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of list) {
    const key = String(keyOf(item));
    let child = there.get(key);
    if (child) there.delete(key);
    else {
      child = create(item);
      child.dataset.key = key;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
  for (const child of there.values()) child.remove();
}

// The stream. `show(view, changed)` is called with the whole view; `age(ms)` ten times a second.
export function follow(channel, show, age) {
  let view = {};
  let heard = null;
  let known = false;
  const source = new EventSource(`/api/events/${channel}?lang=${document.documentElement.lang}`);
  source.addEventListener("change", (event) => {
    const { full, parts } = JSON.parse(event.data);
    view = full ? parts : { ...view, ...parts };
    heard = performance.now();
    known = true;
    show(view, parts);
  });
  let clock = 0;
  source.addEventListener("beat", (event) => {
    heard = performance.now();
    clock = Number(event.data) - heard / 1000;
  });
  source.addEventListener("error", async () => {
    if (source.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
    // Refused, or the service ends: a browser that is no longer let in must enter again.
    const answer = await fetch("/api/snapshot").catch(() => null);
    if (answer && answer.status === 401) location.replace("/enter");
    else setTimeout(() => location.reload(), 1000);
  });
  setInterval(() => {
    const passed = heard === null ? Infinity : performance.now() - heard;
    age(passed, passed > STALE_MS, known);
  }, 100);
  return { nowS: () => (clock || Date.now() / 1000 - performance.now() / 1000) + performance.now() / 1000 };
}

export class Refused extends Error {
  constructor(told, status) {
    const message = String(told.message ?? "").replace(/^[a-z_]+: /, ""); // the name of the act is on the button
    const sentence = message.charAt(0).toUpperCase() + message.slice(1);
    const known = document.documentElement.lang === "en" ? null : WORDS[`refused_${told.error}`];
    super(known ?? [sentence, told.advice].filter(Boolean).join(". ").replace(/\.\./g, "."));
    this.reason = told.error;
    this.status = status;
  }
}

// `keepalive`: it is sent even if the page goes away meanwhile.
export async function post(path, body, keepalive = false) {
  const answer = await fetch(path, {
    method: "POST",
    keepalive,
    headers: { "Content-Type": "application/json", "X-Sabot-CSRF": csrf },
    body: JSON.stringify(body),
  });
  const told = await answer.json().catch(() => ({ message: answer.statusText }));
  if (!answer.ok) throw new Refused(told, answer.status);
  return told;
}

export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
}

// Gives an act. A lost answer repeats it under the same id, so it is done once however often it is sent.
export async function act(button, data, credential, tell) {
  const body = {
    act_id: newId(),
    need: button.need,
    seen: button.seen,
    act: button.act,
    data: { ...button.data, ...data },
    credential: credential ?? null,
  };
  for (let tries = 0; ; tries += 1) {
    try {
      return await post("/api/acts", body);
    } catch (error) {
      if (error instanceof Refused || tries === RETRY_MS.length) throw error;
      tell(say("no_answer"));
      await new Promise((done) => setTimeout(done, RETRY_MS[tries]));
    }
  }
}
