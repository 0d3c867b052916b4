// Rounds of the archive by table, time, deck, seat and result; one round whole; faults per 1,000 rounds.
import { cells, followFloor, read, tell, utc } from "/static_wall/common.js";
import { byId, make, put, say } from "/static/live.js";

const ARCHIVE = document.body.dataset.archive === "true";

// The fields are UTC: the browser's own zone does not matter.
const seconds = (text) => (text ? String(Math.floor(Date.parse(`${text}Z`) / 1000)) : "");

function asked() {
  const form = byId("search").elements;
  const wanted = { table: form.table.value.trim(), from: seconds(form.from.value), until: seconds(form.until.value),
    deck: form.deck.value.trim(), seat: form.seat.value.trim(), result: form.result.value };
  return new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
}

async function search() {
  tell("");
  const wanted = asked();
  const told = await read(`/api/rounds?${wanted}`);
  if (!told) return;
  put(byId("looked"), say(told.more ? "looked_more" : "looked", { found: told.rounds.length, looked: told.looked }));
  byId("rounds").replaceChildren(...told.rounds.map((each) => {
    const open = make("button", { type: "button", class: "link", onclick: () => showRound(each) }, String(each.round_id));
    open.setAttribute("aria-label", `Round ${each.round_id} of ${each.table}`);
    const wagers = each.lines.map(([seat, wager, outcome]) => `${seat}: ${wager.replaceAll("-", " ")} ${outcome}`).join("; ");
    return cells(each.table, open, utc(each.opened_s), each.dealer, each.deck || "", each.end, wagers);
  }));
  const rates = await read(`/api/faults?${wanted}`);
  if (!rates) return;
  byId("rates").replaceChildren(...rates.tables.map((each) => cells(each.table, each.rounds ?? say("not_known"), each.faults,
    each.per_thousand === null ? say("not_known") : each.per_thousand.toFixed(1))));
}

async function showRound(each) {
  const told = await read(`/api/rounds/${encodeURIComponent(each.table)}/${each.source_id}/${each.round_id}`);
  if (!told) return;
  const raw = make("details", {}, make("summary", {}, "As the record has it"), make("pre", {}, JSON.stringify(told, null, 1)));
  byId("found").replaceChildren(...(told.rows ? [] : summary(each, told)), raw);
}

// A round for a person. Below level "all" the archive has only rows, which are shown as they are.
function summary(each, told) {
  const facts = [["Table", each.table], ["Round", told.round], ["Opened (UTC)", utc(told.opened_s)], ["Ended (UTC)", utc(told.ended_s) || say("none")],
    ["Dealer", told.dealer], ["Machine", told.machine || say("none")], ["Deck", told.pack], ["End", told.end],
    ["Count", told.verdict ?? say("not_known")], ["Void", told.void ? `${told.void.why} (${told.void.clause})` : say("none")]];
  const pairs = make("dl", { class: "pairs" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
  const hands = (told.hands ?? []).map((hand) => cells(hand.seat ? `Seat ${hand.seat}` : hand.of, (hand.cards ?? [say("not_known")]).join(" "), hand.points));
  const lines = each.lines.map(([seat, wager, outcome]) => cells(seat, wager.replaceAll("-", " "), outcome));
  return [pairs, table(["Hand", "Cards", "Points"], hands), table(["Seat", "Wager", "Result"], lines)];
}

function table(heads, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((each) => make("th", { scope: "col" }, each)))), make("tbody", {}, ...rows));
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
if (ARCHIVE) search();
else put(byId("looked"), say("no_archive"));
followFloor("wall", () => {});
