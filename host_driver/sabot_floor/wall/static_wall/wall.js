// The wall: every table, who waits for a person first. The order holds while a button is pointed at.
import { followFloor, showAges, showAlarms, since } from "/static_wall/common.js";
import { byId, make, put, say, sync } from "/static/live.js";

const HOLD_MS = 5000;
const FILTERS = ["pit", "game", "state"];
const ALL = { pit: "all_pits", game: "all_games", state: "all_states" };
const asked = new URLSearchParams(location.search);
let view = null;
let shownOrder = [];
let pointedAt = 0;
let waiting = new Set();

const rows = () => view.order.map((name) => view[`t.${name}`]).filter(Boolean);

function show(whole) {
  view = whole;
  byId("floor-part").hidden = view.head.alarms.length === 0;
  showAlarms(byId("floor-alarms"), view.head.alarms, "the whole floor");
  showFilters();
  showTables();
  showNews();
}

// -- filters --------------------------------------------------------------------------------------

const valueOf = (row, name) => (name === "state" ? row.shown : row[name]);

function showFilters() {
  for (const name of FILTERS) {
    const select = byId(name);
    const values = [...new Set([...rows().map((row) => valueOf(row, name)), asked.get(name) ?? ""])].filter(Boolean);
    values.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    sync(select, ["", ...values], (each) => each, (each) => make("option", { value: each }), (option, each) => {
      put(option, each === "" ? say(ALL[name]) : name === "pit" ? say("pit", { pit: each }) : each);
    });
    select.value = asked.get(name) ?? "";
  }
}

for (const name of FILTERS) {
  byId(name).addEventListener("change", () => {
    if (byId(name).value) asked.set(name, byId(name).value);
    else asked.delete(name);
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    if (view) showTables();
  });
}
byId("filters").addEventListener("submit", (event) => event.preventDefault());

const fits = (row) => FILTERS.every((name) => !asked.get(name) || valueOf(row, name) === asked.get(name));

// -- tables ---------------------------------------------------------------------------------------

// A row under a finger or a pointer does not move: the next click would meet another table.
function held() {
  if (!document.querySelector("#tables button:hover")) {
    pointedAt = 0;
    return false;
  }
  pointedAt ||= performance.now();
  return performance.now() - pointedAt < HOLD_MS;
}

function showTables() {
  const wanted = rows().filter(fits);
  const known = new Map(wanted.map((row) => [row.name, row]));
  if (held()) {
    const kept = shownOrder.filter((name) => known.has(name));
    shownOrder = [...kept, ...wanted.map((row) => row.name).filter((name) => !kept.includes(name))];
  } else {
    shownOrder = wanted.map((row) => row.name);
  }
  const focused = document.activeElement;
  sync(byId("tables"), shownOrder.map((name) => known.get(name)), (row) => row.name, makeRow, updateRow);
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
  put(byId("shown"), say("shown", { shown: wanted.length, tables: view.head.tables }));
}

function makeRow(row) {
  return make("li", {}, make("a", { class: "name", href: `/table/${encodeURIComponent(row.name)}` }),
    make("span", { class: "doing" }), make("span", { class: "about" }), make("ul", { class: "alarms" }));
}

function updateRow(element, row) {
  if (element.row === row) return;
  element.row = row;
  element.className = `table ${row.attentions.length ? "needs" : "tile"}`;
  element.dataset.tone = row.tone;
  element.dataset.rank = row.rank;
  element.dataset.hearing = row.hearing;
  const [name, doing, about, alarms] = element.children;
  put(name, row.title.toLowerCase() === row.name ? row.title : `${row.name} ${row.title}`);
  put(doing, row.hearing === "live" || !row.attentions.length ? row.attentions.length ? row.shown : row.word : say("was", { state: row.shown }));
  const told = [row.pit && say("pit", { pit: row.pit }), row.attentions.length && row.game, row.round && say("round", { round: row.round })];
  put(about, told.filter(Boolean).join(", "));
  alarms.hidden = !row.attentions.length;
  showAlarms(alarms, row.attentions, row.name);
}

// What is new is told to those who hear the page.
function showNews() {
  const now = new Set(rows().filter((row) => row.rank === "waits").map((row) => row.name));
  const fresh = [...now].filter((name) => !waiting.has(name));
  if (waiting.size + fresh.length && fresh.length && fresh.length < 4) {
    put(byId("news"), fresh.map((name) => `${name}: ${view[`t.${name}`].word}`).join(". "));
  }
  waiting = now;
}

byId("tables").addEventListener("pointerleave", () => {
  if (view) {
    showTables();
    showAges();
  }
});
followFloor("wall", show);
