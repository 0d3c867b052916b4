// One round for a person, as the record tells it: what happened, the hands, each wager's result, who did what.
import { cells, make, say, utc } from "/static/live.js";

export function roundOf(told, ...facts) {
  const raw = make("details", {}, make("summary", {}, say("round_raw")), make("pre", {}, JSON.stringify(told, null, 1)));
  return [pairs([...facts, ...summary(told)]),
    table(["hand", "cards", "points"], (told.hands ?? []).map((hand) => cells(whose(hand), (hand.cards ?? [say("not_known")]).join(" "), hand.rank || hand.points))),
    table(["seat", "wager", "result", "money"], (told.settled?.lines ?? []).map((line) => cells(line.seat, line.wager.replaceAll("-", " "), line.outcome, money(line)))),
    table(["row", "time", "what", "who", "clause"], (told.done ?? []).map((each) => cells(each.row, utc(each.at_s).slice(11), each.kind.replaceAll("_", " "), each.person || each.role, each.clause))),
    raw];
}

function summary(told) {
  const open = (told.disputes ?? []).map((each) => `${each.why}: ${each.decision || say("round_open")}`);
  return [["round", told.round], ["opened", utc(told.opened_s)], ["ended", utc(told.ended_s)], ["dealer", told.dealer], ["machine", told.machine],
    ["deck", told.pack || ""], ["end", told.end], ["count", told.verdict ?? say("not_counted")],
    ["void", told.void ? `${told.void.why} (${told.void.clause})` : ""], ["held", told.held?.length ? say("yes") : ""], ["disputes", open.join("; ")],
    ["corrected", (told.older ?? []).map((each) => each.why).join("; ")], ["countersign", (told.to_countersign ?? []).join(", ")],
    ["not_told", (told.not_known ?? []).join(", ")]].filter(([, value]) => value !== "").map(([name, value]) => [say(`round_${name}`), value]);
}

function pairs(facts) {
  return make("dl", { class: "pairs" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

function table(heads, rows) {
  if (!rows.length) return "";
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((each) => make("th", { scope: "col" }, say(`round_${each}`))))), make("tbody", {}, ...rows));
}

function whose(hand) {
  return hand.seat ? say("seat", { seat: hand.seat }) : hand.of;
}

// What the house pays besides the stake, less the vigorish; what it takes; or the odds of a stake that nobody told.
function money(line) {
  if (line.stake_cents === null) return line.odds;
  const cents = ["lose", "forfeit", "abandoned"].includes(line.outcome) ? -line.stake_cents : line.pays_cents - line.vig_cents;
  return (cents / 100).toFixed(2);
}
