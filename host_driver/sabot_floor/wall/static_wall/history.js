// Rounds of the archive by table, time, deck, seat and result; one round whole; faults per 1,000 rounds.
import { followFloor, read, tell } from "/static_wall/common.js";
import { byId, cells, make, put, say, utc } from "/static/live.js";
import { roundOf } from "/static/round.js";

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
  // Below level "all" the archive has only rows, which are shown as they are.
  byId("found").replaceChildren(...(told.rows ? [make("pre", {}, JSON.stringify(told, null, 1))] : roundOf(told, [say("table"), each.table])));
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
if (ARCHIVE) search();
else put(byId("looked"), say("no_archive"));
followFloor("wall", () => {});
