// What the wall's pages share: header, banner, signing in, alarms that people take, times.
import { credentialFields, openAsk, shownCredential } from "/static/dialogue.js";
import { byId, follow, make, post, put, Refused, say, sync } from "/static/live.js";

let person = document.querySelector('meta[name="person"]').content;
let stale = false;
let clock = () => Date.now() / 1000;
let blind = null;

export function ago(since) {
  const passed = Math.max(0, Math.floor(clock() - since));
  if (passed < 100) return `${passed} s`;
  if (passed < 6000) return `${Math.floor(passed / 60)} min`;
  const hours = Math.floor(passed / 3600);
  return hours < 48 ? `${hours} h ${Math.floor((passed % 3600) / 60)} min` : `${Math.floor(hours / 24)} days`;
}

export function tell(text) {
  put(byId("message"), text);
}

// Follows a stream; the header and the banner are shown here, the rest by `show`.
export function followFloor(channel, show) {
  showPerson();
  const stream = follow(channel, (view, changed) => {
    document.body.classList.remove("waiting");
    showHead(view.head);
    show(view, changed);
    showAges();
  }, showAge);
  clock = stream.nowS;
}

function showHead(head) {
  byId("simulator").hidden = !head.emulated;
  put(byId("counts"), say("counts", { ...head.counts, tables: head.tables }));
  blind = head.blind;
  byId("blind").hidden = !blind;
  document.body.classList.toggle("is-blind", Boolean(blind));
  if (blind) put(byId("blind-words"), `${blind.words}. ${say("blind_what")}`);
}

let second = 0;
function showAge(passed, old, known) {
  put(byId("age"), !known ? say("connecting") : passed < 1500 ? say("live") : say("old", { seconds: Math.floor(passed / 1000) }));
  stale = old;
  document.body.classList.toggle("stale", old && known);
  byId("stale").hidden = !(old && known);
  if (old && known) put(byId("stale"), say("stale"));
  const now = Math.floor(performance.now() / 1000);
  if (now !== second) {
    second = now;
    showAges();
  }
}

// Ages count by themselves: nothing is sent for them.
export function showAges() {
  if (blind) put(byId("blind-word"), say("blind", { ago: ago(blind.since) }));
  for (const each of document.querySelectorAll("[data-since]")) put(each, ago(Number(each.dataset.since)));
}

export function since(element, seconds) {
  if (seconds === null || seconds === undefined) {
    delete element.dataset.since;
    put(element, "");
    return;
  }
  if (element.dataset.since === String(seconds)) return;
  element.dataset.since = seconds;
  put(element, ago(seconds));
}

// -- alarms ---------------------------------------------------------------------------------------

export function showAlarms(list, attentions, title) {
  sync(list, attentions, (each) => each.kind, makeAlarm, (element, each) => updateAlarm(element, each, title));
}

function makeAlarm() {
  const button = make("button", { type: "button", class: "plain take" });
  const element = make("li", { class: "alarm" }, make("span", { class: "kind" }), make("span", { class: "words" }),
    make("span", { class: "flag" }), make("span", { class: "since" }), make("span", { class: "taker" }), button);
  button.addEventListener("click", () => take(element.alarm, button));
  return element;
}

function updateAlarm(element, alarm, title) {
  element.alarm = alarm;
  const [kind, words, flag, age, taker, button] = element.children;
  put(kind, alarm.word);
  put(words, alarm.words);
  put(flag, ["", say("escalated"), say("escalated_again")][alarm.escalated] ?? "");
  since(age, alarm.since);
  put(taker, alarm.taken_by ? say("taken_by", { person: alarm.taken_by }) : "");
  element.classList.toggle("taken", Boolean(alarm.taken_by));
  button.hidden = alarm.revision === null || (alarm.taken_by !== null && alarm.taken_by !== person);
  const label = alarm.taken_by ? say("give_back") : say("take");
  put(button, label);
  button.setAttribute("aria-label", `${label}: ${title}, ${alarm.word}`);
}

// Does something for the person who is signed in; a person who is not signs in first, and then does it again.
export async function asPerson(todo, again) {
  if (!person) {
    signIn(() => tell(again));
    return;
  }
  tell("");
  try {
    await todo();
  } catch (error) {
    tell(error instanceof Refused ? error.message : say("failed"));
    if (error.reason === "not_signed_in") {
      person = "";
      showPerson();
    }
  }
}

async function take(alarm, button) {
  if (stale || button.busy) return;
  await asPerson(async () => {
    button.busy = true; // not disabled: that would take the focus away
    try {
      const path = alarm.taken_by ? "/api/alarms/give-back" : "/api/alarms/take";
      await post(path, { table: alarm.table, kind: alarm.kind, revision: alarm.revision });
    } finally {
      button.busy = false;
    }
  }, say("sign_in_to_take"));
}

// -- signing in -----------------------------------------------------------------------------------

function showPerson() {
  put(byId("who"), person ? say("who", { person }) : say("nobody"));
  put(byId("sign"), person ? say("sign_out") : say("sign_in"));
}

function signIn(then = () => {}) {
  openAsk(say("sign_in"), credentialFields(["floor"]), true, async (form) => {
    try {
      person = (await post("/api/sign-in", await shownCredential(form, "floor"))).person;
      tell("");
      then();
      return true;
    } catch (error) {
      put(byId("ask-message"), error instanceof Refused ? error.message : say("failed"));
      return false;
    } finally {
      showPerson();
    }
  });
}

byId("sign").addEventListener("click", async () => {
  if (!person) {
    signIn();
    return;
  }
  try {
    await post("/api/sign-out", {});
    person = "";
    tell("");
  } catch (error) {
    tell(error instanceof Refused ? error.message : say("failed"));
  }
  showPerson();
});

// Reads something of the archive; null if it could not be read, and the page says why.
export async function read(path) {
  const answer = await fetch(path).catch(() => null);
  if (answer && answer.status === 401) location.replace("/enter");
  const told = answer ? await answer.json().catch(() => ({})) : {};
  if (answer && answer.ok) return told;
  tell(told.message ? `${told.message}. ${told.advice ?? ""}` : say("failed"));
  return null;
}
