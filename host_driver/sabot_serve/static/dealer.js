// The dealer's page. It shows the view that the service made of the session's snapshot, and gives acts.
import { askThen, credentialFields, openAsk, shownCredential } from "/static/dialogue.js";
import { act, byId, follow, make, post, put, Refused, say, sync } from "/static/live.js";

const SHAPES = {
  circle: "M50 5A45 45 0 1 1 49.9 5Z",
  triangle: "M50 6L96 92H4Z",
  diamond: "M50 3L97 50L50 97L3 50Z",
  octagon: "M30 4H70L96 30V70L70 96H30L4 70V30Z",
  ring: "M50 5A45 45 0 1 1 49.9 5ZM50 25A25 25 0 1 0 50.1 25Z",
};
const SUITS = { S: "\u2660", H: "\u2665", D: "\u2666", C: "\u2663" };
const WORD_SIZES = [7, 6, 5.25, 4.5, 3.75];
const HOLD_MS = 1500;
const STEP_CENTS = 500;

let view = null;
let person = document.querySelector('meta[name="person"]').content;
let stale = true;
let busy = false;
let draft = null; // by seat: the wagers of the next round, if they are not those kept
let amounts = null; // whether each wager's amount is typed; null: as the round before did
let clock = null;

// -- showing ------------------------------------------------------------------------------------

function show(whole) {
  view = whole;
  document.body.classList.remove("waiting");
  const { head, people, table } = view;
  document.body.dataset.tone = head.tone;
  document.body.dataset.lamp = head.lamp;
  put(byId("table"), table.name);
  put(byId("round"), table.round ? say("round", { round: table.round }) : "");
  byId("simulator").hidden = !table.simulator;
  byId("shape").setAttribute("d", SHAPES[head.shape]);
  if (byId("word").textContent !== head.word) {
    put(byId("word"), head.word);
    fitWord();
  }
  put(byId("sentence"), head.sentence);
  put(byId("clause"), [head.clause, people.countersign ? say("countersign", { count: people.countersign }) : ""]
    .filter(Boolean).join(" · "));
  put(byId("void"), head.void);
  put(byId("notice"), head.notice);
  put(byId("announce"), head.announce);
  if (!mayBet()) draft = null;
  showPeople();
  showPath();
  sync(byId("buttons"), view.buttons, (each) => each.key, makeButton, updateButton);
  byId("more").hidden = view.more.length === 0;
  sync(byId("also"), view.also, (each) => each.id, makeAlso, updateAlso);
  sync(byId("steps"), view.steps, (each) => each, () => make("li"), put);
  sync(byId("menu-list"), view.more, (each) => each.key, makeButton, updateButton);
  sync(byId("packs"), view.packs, (each) => each.id, makePack, updatePack);
  showSeats();
  enable();
}

function fitWord() {
  const word = byId("word");
  word.classList.remove("long");
  for (const size of WORD_SIZES) {
    word.style.fontSize = `${size}rem`;
    if (word.scrollWidth <= word.clientWidth) return;
  }
  word.style.removeProperty("font-size");
  word.classList.add("long"); // two lines
}

function showPeople() {
  const { dealer } = view.people;
  const who = dealer ? say("deals", { person: dealer }) : say("nobody");
  put(byId("who"), person && person !== dealer ? `${who} · ${say("you_are", { person })}` : who);
  put(byId("sign"), deals() ? say("sign_out") : say("sign_in"));
  put(byId("call"), view.people.called ? say("called") : say("call"));
  byId("call").classList.toggle("on", Boolean(view.people.called));
  byId("stop").hidden = view.stop === null;
  put(byId("amounts"), say(withAmounts() ? "amounts_off" : "amounts_on"));
}

function deals() {
  return Boolean(person) && view !== null && person === view.people.dealer;
}

function showPath() {
  const known = new Map(view.path.map((each) => [each.place, each]));
  for (const group of document.querySelectorAll("#path g")) {
    const { label, state, holds } = known.get(group.dataset.place);
    group.setAttribute("class", [state, holds && `holds ${holds}`].filter(Boolean).join(" "));
    put(group.querySelector("text"), label);
    let mark = group.querySelector(".mark");
    if (state === "fault" && !mark) {
      const box = group.querySelector(".spot").getBBox();
      mark = document.createElementNS("http://www.w3.org/2000/svg", "text");
      for (const [name, value] of Object.entries({ class: "mark", x: box.x + box.width / 2, y: 24 })) mark.setAttribute(name, value);
      mark.textContent = "\u26a0";
      group.append(mark);
    }
    if (state !== "fault" && mark) mark.remove();
    let cards = group.querySelector(".cards");
    if (holds && !cards) {
      const box = group.querySelector(".spot").getBBox();
      cards = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, value] of Object.entries({
        class: "cards", x: box.x + box.width / 2 - 20, y: 34, width: 40, height: 24, rx: 3,
      })) cards.setAttribute(name, value);
      group.append(cards);
    }
    if (!holds && cards) cards.remove();
  }
}

function makePack() {
  return make("div", { class: "pack" },
    make("p", { class: "name" }), make("p", { class: "count" }), make("p", { class: "state" }), make("p", { class: "hours" }));
}

function updatePack(element, pack) {
  element.dataset.back = pack.back;
  element.classList.toggle("leaves", Boolean(pack.must_leave));
  const [name, count, state, hours] = element.children;
  put(name, pack.name);
  put(count, pack.count ? `${pack.count} ${say("cards")}` : say("not_counted"));
  put(state, pack.must_leave ? `${say("must_leave")}: ${pack.must_leave}` : pack.state);
  element.dataset.until = pack.until_s ?? "";
  showHours(element, hours);
}

function showHours(element, hours) {
  const until = Number(element.dataset.until);
  if (!until) {
    put(hours, "");
    return;
  }
  const minutes = Math.ceil((until - clock.nowS()) / 60);
  element.classList.toggle("soon", minutes <= 30);
  element.classList.toggle("over", minutes <= 10);
  put(hours, minutes > 0
    ? say("hours_left", { hours: Math.floor(minutes / 60), minutes: minutes % 60 })
    : say("hours_over"));
}

function makeAlso() {
  return make("li", {}, make("p"), make("div", { class: "row" }));
}

function updateAlso(element, also) {
  element.dataset.tone = also.tone;
  put(element.firstChild, also.sentence);
  // What the main row offers stands only there.
  const main = new Set(view.buttons.map((each) => each.key));
  const own = also.buttons.filter((each) => !main.has(each.key));
  sync(element.lastChild, own, (each) => each.key, makeButton, updateButton);
}

function cardsOf(hand) {
  return hand.cards.map((name) => {
    const suit = name.slice(-1);
    return make("span", { class: suit === "H" || suit === "D" ? "card red" : "card" }, name.slice(0, -1) + SUITS[suit]);
  });
}

function showSeats() {
  const hands = view.hands.map((each) => ({ seat: 0, ...each, lines: [], bets: true, made: {}, kept: null }));
  sync(byId("seats"), [...hands, ...view.seats], (each) => (each.seat ? each.seat : each.name), makeSeat, updateSeat);
}

function makeSeat({ seat }) {
  const inside = [make("p", { class: "name" }), make("p", { class: "points" }), make("p", { class: "cards" }), make("ul")];
  if (seat === 0) return make("div", { class: "seat dealers" }, ...inside);
  return make("button", { class: "seat", type: "button", onclick: () => touchSeat(seat) }, ...inside.map(asSpan));
}

function asSpan(element) {
  // A button holds phrasing content only.
  return make("span", { class: element.className || "lines" });
}

function updateSeat(element, each) {
  const [name, points, cards, lines] = element.children;
  const made = each.seat ? wagersOf(each) : {}; // null: the seat does not bet
  put(name, each.seat ? say("seat", { seat: each.seat }) : each.name);
  const shown = JSON.stringify([each, made, draft !== null, view.table.over]);
  if (element.dataset.shown === shown) return;
  element.dataset.shown = shown;
  element.classList.toggle("empty", made === null);
  if (each.seat) element.setAttribute("aria-pressed", String(made !== null));
  put(points, each.hand ? each.hand.points : "");
  points.classList.toggle("words", Boolean(each.hand) && each.hand.points.length > 1); // three faces, not a number
  cards.replaceChildren(...(each.hand ? cardsOf(each.hand) : []));
  if (each.lines.length && draft === null) {
    lines.replaceChildren(...each.lines.map((line) =>
      make("span", { class: `line ${line.outcome}` }, make("b", {}, `${line.do} ${line.money}`), ` ${line.wager}`)));
    const next = Object.values(made ?? {}).reduce((sum, cents) => sum + cents, 0);
    if (view.table.over && next) lines.append(make("span", { class: "line" }, say("next", { money: money(next) })));
  } else if (each.seat) {
    const names = Object.entries(made ?? {});
    lines.replaceChildren(...(names.length
      ? names.map(([wager, cents]) => make("span", { class: "line" }, `${wagerName(wager)} ${money(cents)}`))
      : [make("span", { class: made ? "line bet" : "line none" }, say(made ? "bets" : "no_bet"))]));
  }
}

function money(cents) {
  const whole = Math.floor(cents / 100).toLocaleString("en-US");
  return cents % 100 ? `${whole}.${String(cents % 100).padStart(2, "0")}` : whole;
}

function wagerName(name) {
  return view.table.wager_names[name] ?? name;
}

// -- wagers -------------------------------------------------------------------------------------

function wagersOf(each) {
  if (draft !== null) return draft[each.seat] ?? null;
  return each.bets ? each.made : null;
}

function withAmounts() {
  return amounts ?? (view.table.bets_known && view.seats.some((each) => Object.keys(each.kept ?? {}).length > 0));
}

// Chips lie on the layout: one touch says that a seat bets, or does not. Or each wager's amount is typed.
function touchSeat(seat) {
  if (!mayBet() || stale) return;
  draft = draft ?? Object.fromEntries(view.seats.filter((one) => one.kept).map((one) => [one.seat, { ...one.kept }]));
  if (withAmounts()) editWagers(seat);
  else if (draft[seat]) delete draft[seat];
  else draft[seat] = {};
  showSeats();
}

function mayBet() {
  return view.buttons.concat(...view.also.map((each) => each.buttons)).some((each) => each.act === "no_more_bets");
}

function editWagers(seat) {
  const made = draft[seat] ?? {};
  put(byId("wagers-title"), say("seat", { seat }));
  const change = (wager, cents) => {
    const now = Math.max(0, (made[wager] ?? 0) + cents);
    if (now) made[wager] = now;
    else delete made[wager];
    if (Object.keys(made).length) draft[seat] = made;
    else delete draft[seat];
    fill();
    showSeats();
  };
  const fill = () => sync(byId("wagers-list"), view.table.wagers, (wager) => `${seat} ${wager}`,
    (wager) => make("div", { class: "stake" }, make("p"), make("p", { class: "money" }),
      make("button", { type: "button", class: "big", "aria-label": say("less", { wager: wagerName(wager) }), onclick: () => change(wager, -STEP_CENTS) }, "\u2212 5"),
      make("button", { type: "button", class: "big", "aria-label": `${say("more", { wager: wagerName(wager) })} 5`, onclick: () => change(wager, STEP_CENTS) }, "+ 5"),
      make("button", { type: "button", class: "big", "aria-label": `${say("more", { wager: wagerName(wager) })} 25`, onclick: () => change(wager, 5 * STEP_CENTS) }, "+ 25")),
    (element, wager) => {
      put(element.children[0], wagerName(wager));
      put(element.children[1], money(made[wager] ?? 0));
    });
  byId("wagers-none").onclick = () => {
    delete draft[seat];
    showSeats();
    byId("wagers").close();
  };
  fill();
  byId("wagers").showModal();
}

function draftedWagers() {
  if (draft === null) return {};
  return withAmounts() ? { wagers: draft } : { seats: Object.keys(draft).map(Number) };
}

// -- acts ---------------------------------------------------------------------------------------

function makeButton(button) {
  const element = make("button", { type: "button", class: "big act" },
    make("span", { class: "label" }), make("span", { class: "small" }));
  if (button.hold) holdToConfirm(element);
  else element.addEventListener("click", () => press(element));
  return element;
}

function updateButton(element, button) {
  element.button = button;
  const [label, small] = element.children;
  put(label, button.credential && button.who ? say("who_what", { who: button.who, what: button.label }) : button.label);
  put(small, button.hold ? `${button.clause}. ${button.gives_back} ${say("hold")}` : button.detail);
  element.classList.toggle("primary", !button.credential && !button.hold && Boolean(button.need));
  element.classList.toggle("hold", button.hold);
}

function holdToConfirm(element) {
  let began = 0;
  let timer = 0;
  const end = () => {
    clearInterval(timer);
    began = 0;
    element.style.removeProperty("--held");
  };
  const begin = (event) => {
    if (element.disabled || began || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    element.focus();
    began = performance.now();
    timer = setInterval(() => {
      const share = Math.min(1, (performance.now() - began) / HOLD_MS);
      element.style.setProperty("--held", `${share * 100}%`);
      if (share === 1) {
        end();
        press(element);
      }
    }, 50);
  };
  element.addEventListener("pointerdown", begin);
  element.addEventListener("keydown", begin);
  for (const each of ["pointerup", "pointerleave", "pointercancel", "keyup", "blur"]) element.addEventListener(each, end);
  element.addEventListener("contextmenu", (event) => event.preventDefault());
}

async function press(element) {
  const { button } = element;
  if (busy || stale) return;
  let data = button.act === "no_more_bets" ? draftedWagers() : {};
  if (button.act === "no_more_bets" && button.editor && draft === null) {
    tell(view.head.sentence);
    return;
  }
  const asks = button.asks.filter((each) => each.kind !== "wagers");
  if (button.credential || asks.length) {
    askThen(button, asks, view, (values, credential) => give(button, { ...data, ...values }, credential));
    return;
  }
  if (!deals()) {
    signIn();
    return;
  }
  await give(button, data, null);
}

async function give(button, data, credential) {
  busy = true;
  enable();
  tell("");
  try {
    await act(button, data, credential, tell);
    tell("");
    if (button.act === "no_more_bets") draft = null;
    byId("menu").close();
    return true;
  } catch (error) {
    tell(error instanceof Refused ? error.message : say("not_sent"));
    if (byId("ask").open) put(byId("ask-message"), error instanceof Refused ? error.message : say("not_sent"));
    return false;
  } finally {
    busy = false;
    enable();
  }
}

function tell(text) {
  put(byId("message"), text);
}

// -- signing in ----------------------------------------------------------------------------------

function signIn() {
  openAsk(say("sign_in"), credentialFields(["dealer"]), true, async (form) => {
    busy = true;
    try {
      const told = await post("/api/sign-in", await shownCredential(form, "dealer"));
      person = told.person;
      tell(told.message);
      return true;
    } catch (error) {
      put(byId("ask-message"), error instanceof Refused ? error.message : say("failed"));
      return false;
    } finally {
      busy = false;
      showPeople();
      enable();
    }
  });
}

byId("sign").addEventListener("click", async () => {
  if (!deals()) {
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
  showPeople();
  enable();
});

byId("call").addEventListener("click", () => {
  if (deals()) give({ act: "call_floor", need: null, seen: view.table.newest_row, data: {}, asks: [] }, {}, null);
  else signIn();
});

// The stop is one touch: it is there only while no round is open.
byId("stop").addEventListener("click", () => {
  if (view.stop === null || stale) return;
  if (deals()) give(view.stop, {}, null);
  else signIn();
});

byId("amounts").addEventListener("click", () => {
  amounts = !withAmounts();
  draft = null;
  showPeople();
  showSeats();
  byId("menu").close();
});
byId("more").addEventListener("click", () => byId("menu").showModal());

// -- the age of what is shown -------------------------------------------------------------------

function enable() {
  const off = stale || busy || view === null;
  for (const element of document.querySelectorAll("button.act")) {
    element.disabled = off || (element.button.hold && !element.button.credential && !deals());
  }
  for (const element of document.querySelectorAll("button.seat")) element.disabled = off || !mayBet() || !deals();
  byId("call").disabled = stale || view === null;
  byId("stop").disabled = off;
  byId("sign").disabled = off || (deals() ? !view.people.may_sign_out : false);
  byId("more").disabled = off;
}

function age(passed, old, known) {
  const seconds = Math.floor(passed / 1000);
  put(byId("age"), !known ? say("connecting") : passed < 1500 ? say("live") : say("old", { seconds }));
  document.body.classList.toggle("stale", old && known);
  byId("stale").hidden = !(old && known);
  if (old && known) put(byId("stale"), say("stale"));
  if (old !== stale) {
    stale = old;
    enable();
  }
  if (view) for (const each of document.querySelectorAll(".pack")) showHours(each, each.lastChild);
}

clock = follow("dealer", show, age);
addEventListener("resize", fitWord);
