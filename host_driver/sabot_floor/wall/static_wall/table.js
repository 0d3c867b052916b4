// One table: what it is doing, what it needs, its machine, decks and rows; rounds, faults and wear of the archive.
import { asPerson, followFloor, read, showAlarms, since, tell } from "/static_wall/common.js";
import { byId, cells, make, newId, post, put, say, sync, utc } from "/static/live.js";

const NAME = document.body.dataset.table;
const ARCHIVE = document.body.dataset.archive === "true";
let newest = null;

function pairs(list, told) {
  sync(list, told, (each) => each[0], (each) => make("div", {}, make("dt", {}, each[0]), make("dd")), (element, each) => {
    if (each[2]) since(element.lastChild, each[1]);
    else put(element.lastChild, each[1]);
  });
}

function show(view) {
  const { row, detail } = view;
  if (!row) {
    tell(say("no_such_table"));
    return;
  }
  document.body.dataset.tone = row.tone;
  put(byId("word"), row.attentions.length && row.hearing === "live" ? row.shown : row.word);
  showAlarms(byId("attentions"), row.attentions, row.name);
  byId("note").hidden = !detail.takes_notes;
  pairs(byId("facts"), [
    ["Name", row.title], ["Pit", row.pit || say("none")], ["Game", row.game || say("not_known")],
    ["Rule text", [detail.rule_text, detail.ruleset].filter(Boolean).join(", ") || say("not_known")],
    ["State", row.shown.toLowerCase()], ["Dealer", row.dealer || say("none")],
    ["Round", row.round || say("none")], ["Last round", detail.last_round || say("none")],
    ["Notes not read", detail.takes_notes ? detail.notes : say("no_notes")],
    ["Disputes", detail.disputes], ["Rows to countersign", detail.countersign],
    ["What leaves the table", detail.level || say("not_known")], ["Last heartbeat, ago", detail.heard, true],
    ["State as of (table's clock)", utc(detail.told)],
  ]);
  sync(byId("needs"), detail.needs.length ? detail.needs : [{ words: say("none"), clause: "" }], (each) => each.words, () => make("li"),
    (element, need) => put(element, need.clause ? `${need.words} (${need.clause})` : need.words));
  const machine = detail.machine ?? { faults: [] };
  pairs(byId("machine"), [
    ["Serial number", machine.serial || say("not_known")], ["Answers", machine.up === undefined ? say("not_known") : machine.up ? "yes" : "no"],
    ["Shoe", machine.shoe ?? ""], ["Shuffler", machine.shuffler ?? ""],
  ]);
  sync(byId("faults-now"), machine.faults, (each) => `${each.words} ${each.place}`, () => make("li", { "data-tone": "stop" }),
    (element, fault) => put(element, `${fault.words} (${fault.place})`));
  sync(byId("packs"), detail.packs, (each) => each.id, () => make("div", { class: "pack" }, make("p", { class: "name" }), make("p"), make("p", { class: "hours" })),
    (element, pack) => {
      element.dataset.back = pack.back;
      const [name, state, until] = element.children;
      put(name, `${pack.back.toUpperCase()} ${pack.id}`);
      put(state, [pack.must_leave || pack.state, pack.counted ? "counted" : say("not_counted")].join(", "));
      put(until, pack.until ? `until ${utc(pack.until).slice(0, 16)} UTC` : "");
    });
  byId("chains").replaceChildren(...detail.chains.map((each) =>
    cells(each.chain, each.rows, each.published, each.archived || say("none"), each.rows > each.published ? `${each.waiting_s} s` : "")));
  const key = `${row.round}/${detail.last_round}/${machine.faults.length}`;
  if (key !== newest) {
    newest = key;
    readHistory();
  }
}

// The same words are sent again with the same id, so that the table takes them once.
const note = { text: "", id: "", busy: false };

byId("note").addEventListener("submit", (event) => {
  event.preventDefault();
  asPerson(sendNote, say("sign_in_to_send"));
});

async function sendNote() {
  const text = byId("note-text").value.trim();
  if (note.busy || !text) return;
  if (text !== note.text) {
    note.text = text;
    note.id = newId();
  }
  note.busy = true;
  put(byId("note-message"), say("note_sending"));
  try {
    await post("/api/notes", { table: NAME, note_id: note.id, text });
    note.text = "";
    byId("note-text").value = "";
    put(byId("note-message"), say("note_shown"));
  } catch (error) {
    put(byId("note-message"), "");
    throw error;
  } finally {
    note.busy = false;
  }
}

const short = (seconds) => utc(seconds).slice(5);

function fill(id, rows) {
  byId(id).replaceChildren(...(rows.length ? rows : [cells(say("none"))]));
}

async function readHistory() {
  if (!ARCHIVE) {
    put(byId("archive-message"), say("no_archive"));
    return;
  }
  const told = await read(`/api/tables/${encodeURIComponent(NAME)}/history`);
  if (!told) return;
  fill("rounds", told.rounds.map((each) => cells(each.round_id, short(each.opened_s), each.dealer, each.deck, each.end)));
  fill("faults", told.faults.map((each) =>
    cells(short(each.at_s), (each.fault ?? "").replaceAll("_", " "), (each.place ?? "").replaceAll("_", " "), each.round)));
  fill("wear", told.wear.map((each) => cells(each.roller.replaceAll("_", " "), each.shuffles,
    each.mean_ms === null ? "" : `${each.mean_ms} ms`, each.change_percent === null ? "" : `${each.change_percent} %`, each.rounds_left)));
}

followFloor(`table/${encodeURIComponent(NAME)}`, show);
