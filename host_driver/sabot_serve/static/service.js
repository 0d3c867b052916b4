// The technician's page: sensors, axes, faults, wear, calibration, and jogging by a held button.
import { askThen, credentialFields, openAsk, shownCredential } from "/static/dialogue.js";
import { act, byId, follow, make, newId, post, put, Refused, say, sync } from "/static/live.js";

const RENEW_MS = 100;
const ELEVATOR_UM = 1000;
const SVG = "http://www.w3.org/2000/svg";
let view = null;
let stale = true;
let permit = null; // { id, part }: what this page may jog
let hold = null; // the button that is held now
let position = 0; // of the elevator, as this page sent it

// -- showing ------------------------------------------------------------------------------------

function show(whole) {
  view = whole;
  document.body.classList.remove("waiting");
  document.body.dataset.tone = view.head.tone;
  document.body.dataset.service = String(view.device.in_service);
  put(byId("table"), view.table.name);
  byId("simulator").hidden = !view.table.simulator;
  put(byId("device"), `${view.device.serial} · shuffler ${view.device.shuffler} · shoe ${view.device.shoe}`);
  put(byId("word"), view.device.in_service ? "IN SERVICE" : view.head.word);
  put(byId("message"), view.error ? `The machine does not answer: ${view.error}` : "");
  const acts = ["begin_service", "end_service", "self_test"].map((name) => view.acts[name]).filter(Boolean);
  sync(byId("acts"), acts, (each) => each.key, makeAct, updateAct);
  sync(byId("needs"), view.needs, (each) => each.id, () => make("li", {}, make("p"), make("div", { class: "row" })), (element, need) => {
    put(element.firstChild, need.sentence);
    sync(element.lastChild, need.buttons, (each) => each.key, makeAct, updateAct);
  });
  sync(byId("places"), view.places, (each) => each.place, () => make("li", {}, make("p", { class: "name" }), make("ul")), (element, place) => {
    element.classList.toggle("fault", place.fault);
    element.dataset.place = place.place;
    put(element.firstChild, place.fault ? `\u26a0 ${place.label}` : place.label);
    sync(element.lastChild, place.sensors, (each) => each.name, () => make("li"), updateSensor);
  });
  showMotion();
  if (!view.acts.jog && permit) endPermit("");
  sync(byId("parts"), view.parts, (each) => each.name, makePart, (element, part) => {
    put(element, part.name);
    element.disabled = stale || !view.acts.jog;
    element.setAttribute("aria-pressed", String(permit?.part.name === part.name));
  });
  sync(byId("calibration"), view.calibration, (each) => each.name, makeCalibration, updateCalibration);
  showTested();
  sync(byId("faults"), view.faults, (each) => `${each.at_s} ${each.fault} ${each.place}`, () => make("tr"), (row, each) => cells(row, [
    time(each.at_s), each.where, each.words, each.cards, each.cleared_s === null ? "no" : time(each.cleared_s)]));
  sync(byId("wear"), view.wear, (each) => each.name, () => make("tr"), (row, each) => {
    row.className = each.ok ? "" : "outside";
    cells(row, [each.meaning, wearText(each), each.limit ? "\u00b15 %" : ""]);
  });
  sync(byId("trends"), view.trends, (each) => each.roller, () => make("figure", { class: "trend" }, make("figcaption"), document.createElementNS(SVG, "svg")), updateTrend);
}

function cells(row, texts) {
  while (row.children.length < texts.length) row.append(make("td"));
  texts.forEach((text, at) => put(row.children[at], text));
}

function time(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

function wearText(each) {
  if (each.unit === "ms") return `${(each.value / 3600000).toFixed(2)} h`;
  if (each.drift !== null) return `${each.drift >= 0 ? "+" : ""}${(each.drift / 10).toFixed(1)} %`;
  return each.unit ? "not measured" : each.value;
}

function updateSensor(element, sensor) {
  const level = sensor.level === null ? "hidden" : sensor.level ? "on" : "off";
  const kind = sensor.level === null ? "secret" : sensor.level ? "on" : "";
  element.className = ["dot", kind, sensor.level !== null && !sensor.at_rest ? "differs" : ""].filter(Boolean).join(" ");
  element.dataset.level = level;
  element.title = sensor.meaning;
  put(element, `${sensor.name.replaceAll("_", " ")}: ${level}`);
}

function showMotion() {
  const { height_um: height, rollers_um: rollers } = view.motion;
  const told = (um) => (um === null || um === undefined ? "hidden" : `${(um / 1000).toFixed(1)} mm`);
  const rows = [["Stack in the chamber", told(height)], ...["Feed", "Insertion", "Deal"].map((name, at) => [`${name} roller`, told(rollers?.[at])])];
  sync(byId("motion"), rows, ([name]) => name, () => make("div", {}, make("dt"), make("dd")), (element, [name, text]) => {
    put(element.firstChild, name);
    put(element.lastChild, text);
  });
}

function showTested() {
  const { tested } = view;
  const word = (half) => (tested[half] === undefined ? "not tested" : tested[half] ? "passed" : "FAILED");
  put(byId("tested"), tested.at_s ? `${time(tested.at_s)}: shuffler half ${word("shuffler")}, shoe half ${word("shoe")}` : "not tested since the journal began");
}

// Mean with its spread over the shuffles, and the limits of 5 % around the first.
function updateTrend(element, trend) {
  const [caption, svg] = element.children;
  const last = trend.points.at(-1);
  const change = trend.change_percent === null ? "" : `, ${trend.change_percent >= 0 ? "+" : ""}${trend.change_percent} % since the first`;
  const left = trend.rounds_left === null ? "no forecast" : `about ${trend.rounds_left} rounds to the limit`;
  put(caption, last ? `${trend.roller} roller: ${last[0].toFixed(1)} ms a card, spread ${(last[1] ?? 0).toFixed(2)} ms, ${trend.shuffles} shuffles${change}. Forecast (experimental): ${left}.`
    : `${trend.roller} roller: nothing timed yet`);
  const shown = JSON.stringify(trend.points);
  if (svg.dataset.shown === shown || !last) return;
  svg.dataset.shown = shown;
  const [width, height] = [360, 90];
  const first = trend.points[0][0];
  const [low, high] = [first * 0.93, first * 1.07];
  const x = (at) => (trend.points.length === 1 ? width / 2 : (at * (width - 10)) / (trend.points.length - 1) + 5);
  const y = (ms) => height - ((ms - low) * height) / (high - low);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${trend.roller} roller: mean and spread of a card's time over ${trend.points.length} shuffles`);
  const draw = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    svg.append(made);
  };
  svg.replaceChildren();
  for (const share of [0.95, 1.05]) draw("path", { class: "limit", d: `M0 ${y(first * share)}H${width}` });
  trend.points.forEach(([mean, spread], at) => draw("path", { class: "spread", d: `M${x(at)} ${y(mean - (spread ?? 0))}V${y(mean + (spread ?? 0))}` }));
  draw("path", { class: "mean", d: trend.points.map(([mean], at) => `${at ? "L" : "M"}${x(at)} ${y(mean)}`).join("") });
  trend.points.forEach(([mean], at) => draw("circle", { cx: x(at), cy: y(mean), r: 2.5 }));
}

// -- acts ---------------------------------------------------------------------------------------

function makeAct() {
  const element = make("button", { type: "button", class: "big act" });
  element.addEventListener("click", () => askThen(element.button, element.button.asks, view, (values, credential) => give(element.button, values, credential)));
  return element;
}

function updateAct(element, button) {
  element.button = button;
  element.dataset.act = button.act;
  element.disabled = stale;
  put(element, button.label);
}

async function give(button, values, credential) {
  try {
    await act(button, values, credential, (text) => put(byId("ask-message"), text));
    return true;
  } catch (error) {
    put(byId("ask-message"), error instanceof Refused ? error.message : say("not_sent"));
    return false;
  }
}

function makeCalibration(each) {
  return make("div", { class: "calibration" }, make("p", { class: "name" }), make("p", { class: "now" }), make("p", { class: "guide" }),
    make("div", { class: "row" }, make("button", { type: "button", class: "big set", onclick: () => calibrate(each.name, null) }, "Set"),
      make("button", { type: "button", class: "big undo", onclick: () => calibrate(each.name, "undo") }, "Undo")));
}

function updateCalibration(element, each) {
  const [name, now, guide, row] = element.children;
  put(name, each.meaning);
  const set = each.set_s ? `set ${time(each.set_s)} UTC` : "never set: a new machine's value";
  put(now, `${each.value} um (${set}); before: ${each.before === null ? "not known" : `${each.before} um`}; limits ${each.lowest} to ${each.highest}`);
  put(guide, each.guide);
  for (const button of row.children) button.disabled = stale || !view.acts.calibrate;
  row.lastChild.disabled ||= each.before === null;
}

function calibrate(name, how) {
  const each = view.calibration.find((one) => one.name === name);
  const button = view.acts.calibrate;
  const known = { what: each.name, was: each.value };
  const asks = how === "undo" ? [] : [{ name: "value", label: `${each.meaning}, ${each.lowest} to ${each.highest} um`, kind: "number", choices: {} }];
  const title = how === "undo" ? { ...button, label: `Undo: ${each.meaning} is ${each.before} um again` } : { ...button, label: `${button.label}: ${each.meaning}` };
  askThen(title, asks, view, (values, credential) =>
    give(button, { ...known, value: how === "undo" ? each.before : values.value }, credential));
}

// -- jogging ------------------------------------------------------------------------------------

function makePart(part) {
  return make("button", { type: "button", class: "big part", "data-part": part.name, title: part.words, onclick: () => ask(part) });
}

function ask(part) {
  openAsk(`Service: jog ${part.words}`, credentialFields(["service"]), true, async (form) => {
    try {
      const told = await post("/api/jog/permit", {
        act_id: newId(), seen: view.table.newest_row, part: part.name, credential: await shownCredential(form, "service"),
      });
      permit = { id: told.permit, part };
      position = 0;
      showHeld();
      return true;
    } catch (error) {
      put(byId("ask-message"), error instanceof Refused ? error.message : say("failed"));
      return false;
    }
  });
}

function showHeld() {
  byId("held").replaceChildren();
  if (!permit) return;
  const { part } = permit;
  put(byId("jog-words"), part.roller ? `Hold a button: ${part.words} turns as long as it is held.` : `Each touch is one step of ${part.words}.`);
  const made = part.roller
    ? [holdButton("\u25c0 Back", -1), holdButton("Forward \u25b6", 1)]
    : part.name === "elevator"
      ? [stepButton("Home", () => 0), stepButton("\u2212 1 mm", () => position - ELEVATOR_UM), stepButton("+ 1 mm", () => position + ELEVATOR_UM)]
      : [stepButton("Home", () => 0), stepButton("Out", () => 1)];
  byId("held").append(...made);
  made[0].focus();
}

function endPermit(why) {
  release();
  permit = null;
  byId("held").replaceChildren();
  put(byId("jog-message"), why);
}

function stepButton(label, target) {
  return make("button", { type: "button", class: "big step", onclick: async () => {
    const amount = Math.min(Math.max(target(), 0), permit.part.most);
    try {
      await post("/api/jog/move", { permit: permit.id, amount });
      position = amount;
      put(byId("jog-message"), `${permit.part.name}: sent to ${permit.part.name === "elevator" ? `${amount / 1000} mm` : amount ? "its end" : "its home"}`);
    } catch (error) {
      endPermit(error instanceof Refused ? error.message : say("failed"));
    }
  } }, label);
}

function holdButton(label, direction) {
  const element = make("button", { type: "button", class: "big hold-jog", "data-direction": direction }, label);
  const begin = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (hold || stale || (event.type === "keydown" && event.repeat)) return;
    if (event.pointerId !== undefined) element.setPointerCapture(event.pointerId);
    element.focus();
    turn(element, direction);
  };
  element.addEventListener("pointerdown", begin);
  element.addEventListener("keydown", begin);
  for (const each of ["pointerup", "pointercancel", "lostpointercapture", "keyup", "blur"]) element.addEventListener(each, release);
  element.addEventListener("contextmenu", (event) => event.preventDefault());
  return element;
}

// Renews every 100 ms while the button is held. Each renewal carries the token of the answer before it.
async function turn(element, direction) {
  const mine = { element };
  hold = mine;
  element.classList.add("turning");
  put(byId("jog-message"), `${permit.part.name} turns`);
  try {
    let { token } = await post("/api/jog/press", { permit: permit.id, direction });
    while (hold === mine) {
      const sent = performance.now();
      ({ token } = await post("/api/jog/renew", { permit: permit.id, token }));
      const rest = RENEW_MS - (performance.now() - sent);
      if (rest > 0) await new Promise((done) => setTimeout(done, rest));
    }
  } catch (error) {
    if (hold === mine) put(byId("jog-message"), error instanceof Refused ? error.message : say("failed"));
    if (error.reason === "no_permit") permit = null;
    if (hold === mine) release();
    if (!permit) byId("held").replaceChildren();
  }
}

function release() {
  if (!hold) return;
  const { element } = hold;
  hold = null;
  element.classList.remove("turning");
  put(byId("jog-message"), `${permit?.part.name ?? ""} stopped`);
  if (permit) post("/api/jog/release", { permit: permit.id }, true).catch(() => {}); // the lease ends by itself
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) release();
});
addEventListener("pagehide", release);
addEventListener("blur", release);

function age(passed, old, known) {
  put(byId("age"), !known ? say("connecting") : passed < 1500 ? say("live") : say("old", { seconds: Math.floor(passed / 1000) }));
  document.body.classList.toggle("stale", old && known);
  byId("stale").hidden = !(old && known);
  if (old && known) put(byId("stale"), say("stale"));
  if (old !== stale) {
    stale = old;
    if (old) release();
    if (view) show(view);
  }
}

follow("service", show, age);
