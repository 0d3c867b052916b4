// The floor's page: everything that the table needs, each act with a credential; decks, rounds, the record.
import { askThen } from "/static/dialogue.js";
import { act, byId, follow, make, put, Refused, say, sync } from "/static/live.js";
import { roundOf } from "/static/round.js";

const KEPT_ROWS = 200;
let view = null;
let newest = 0;
let reading = false;

function show(whole) {
  view = whole;
  document.body.classList.remove("waiting");
  document.body.dataset.tone = view.head.tone;
  put(byId("table"), view.table.name);
  byId("simulator").hidden = !view.table.simulator;
  put(byId("word"), view.head.word);
  put(byId("who"), view.people.dealer ? say("deals", { person: view.people.dealer }) : say("nobody"));
  sync(byId("needs"), view.needs, (each) => each.id, () => make("li", {}, make("p"), make("div", { class: "row" })), (element, need) => {
    element.dataset.tone = need.tone;
    put(element.firstChild, need.clause ? `${need.sentence} (${need.clause})` : need.sentence);
    sync(element.lastChild, need.buttons, (each) => each.key, makeButton, updateButton);
  });
  sync(byId("offers"), view.offers, (each) => each.key, makeButton, updateButton);
  sync(byId("packs"), view.packs, (each) => each.id, () => make("div", { class: "pack" }, make("p", { class: "name" }), make("p"), make("p"), make("p")),
    (element, pack) => {
      element.dataset.back = pack.back;
      const [name, count, state, until] = element.children;
      put(name, `${pack.name} ${pack.id}`);
      put(count, pack.count ? `${pack.count} ${say("cards")}` : say("not_counted"));
      put(state, pack.must_leave || pack.state);
      put(until, pack.until_s ? new Date(pack.until_s * 1000).toISOString().slice(0, 16).replace("T", " ") : "");
    });
  readRows();
}

function makeButton() {
  const element = make("button", { type: "button", class: "big act" }, make("span", { class: "label" }), make("span", { class: "small" }));
  element.addEventListener("click", () => {
    const { button } = element;
    askThen(button, button.asks, view, (values, credential) => give(button, values, credential));
  });
  return element;
}

function updateButton(element, button) {
  element.button = button;
  put(element.firstChild, say("who_what", { who: button.who, what: button.label }));
  put(element.lastChild, button.hold ? `${button.clause}. ${button.gives_back}` : button.detail);
}

async function give(button, values, credential) {
  try {
    await act(button, values, credential, (text) => put(byId("ask-message"), text));
    put(byId("message"), "");
    return true;
  } catch (error) {
    put(byId("ask-message"), error instanceof Refused ? error.message : say("not_sent"));
    return false;
  }
}

// New rows of the record, newest first.
async function readRows() {
  if (reading || view.table.newest_row <= newest) return;
  reading = true;
  try {
    const answer = await fetch(`/api/rows?after=${Math.max(newest, view.table.newest_row - KEPT_ROWS)}`);
    if (!answer.ok) return;
    for (const row of (await answer.json()).rows) {
      newest = row.number;
      byId("log").prepend(make("tr", {}, ...[row.number, new Date(row.at_s * 1000).toISOString().slice(11, 19), row.kind.replaceAll("_", " "),
        row.person || row.role, row.round || "", row.clause].map((each) => make("td", {}, String(each)))));
    }
    while (byId("log").children.length > KEPT_ROWS) byId("log").lastChild.remove();
  } finally {
    reading = false;
  }
}

byId("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await fetch(`/api/rounds/${encodeURIComponent(byId("round").value.trim())}`).catch(() => null);
  const told = answer ? await answer.json().catch(() => ({})) : { message: say("failed") };
  if (!answer || !answer.ok) {
    byId("found").replaceChildren(make("p", { class: "message" }, told.message ?? say("failed")));
    return;
  }
  byId("found").replaceChildren(...roundOf(told));
});

function age(passed, old, known) {
  put(byId("age"), !known ? say("connecting") : passed < 1500 ? say("live") : say("old", { seconds: Math.floor(passed / 1000) }));
  document.body.classList.toggle("stale", old && known);
  byId("stale").hidden = !(old && known);
  if (old && known) put(byId("stale"), say("stale"));
  for (const each of document.querySelectorAll("button.act")) each.disabled = old;
}

follow("floor", show, age);
