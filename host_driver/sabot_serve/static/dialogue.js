// The dialogue in which people show who they are and give the values of an act.
import { byId, make, put, say } from "/static/live.js";

let answer = null; // what its OK does
let sending = false;

function field(name, label, attributes = {}) {
  const input = make("input", { id: `ask-${name}`, name, autocomplete: "off", autocapitalize: "none", spellcheck: "false", ...attributes });
  return make("div", { class: "field" }, make("label", { for: `ask-${name}` }, label), input);
}

export function credentialFields(roles) {
  const dealer = roles.includes("dealer");
  const fields = [];
  if (dealer) fields.push(field("person", say("person")));
  fields.push(field("badge", say("badge"), { type: "password" }));
  fields.push(field("pin", say("pin"), { type: "password", inputmode: "numeric", required: true }));
  if (!dealer) fields.push(field("key", say("key"), { type: "file" }));
  return fields;
}

export async function shownCredential(form, role) {
  const text = (name) => form.elements[name]?.value?.trim() ?? "";
  const file = form.elements.key?.files?.[0];
  return {
    person: text("person"),
    badge: text("badge"),
    pin: text("pin"),
    key: file ? (await file.text()).trim() : "",
    role,
  };
}

export function openAsk(title, fields, pin, done) {
  put(byId("ask-title"), title);
  put(byId("ask-message"), "");
  byId("ask-fields").replaceChildren(...fields);
  byId("keypad").hidden = !pin;
  answer = done;
  byId("ask").showModal();
  byId("ask-fields").querySelector("input, select")?.focus();
}

// Asks for values, and for a credential where the act needs one; then calls done(values, credential).
export function askThen(button, asks, view, done) {
  const role = button.roles.find((each) => each !== "dealer") ?? "dealer";
  const fields = asks.flatMap((each) => askFields(each, view));
  if (button.credential) fields.push(...credentialFields(button.roles));
  openAsk(say("who_what", { who: button.who, what: button.label }), fields, button.credential, async (form) => {
    const values = {};
    for (const each of asks) values[each.name] = readField(form, each);
    const credential = button.credential ? await shownCredential(form, role) : null;
    return done(values, credential);
  });
}

function askFields(ask, view) {
  if (ask.kind === "hands") {
    return [0, ...view.seats.filter((each) => each.bets).map((each) => each.seat)].map((seat) =>
      field(`hand-${seat}`, seat ? say("hand", { seat }) : say("hand_dealer"), { required: true }));
  }
  if (ask.kind === "choice" || ask.kind === "yes_no" || ask.name === "seat") {
    const choices = ask.kind === "choice" ? ask.choices
      : ask.kind === "yes_no" ? { no: say("no"), yes: say("yes") }
        : Object.fromEntries(view.table.seats.map((seat) => [seat, say("seat", { seat })]));
    const select = make("select", { id: `ask-${ask.name}`, name: ask.name },
      ...Object.entries(choices).map(([value, label]) => make("option", { value }, label)));
    return [make("div", { class: "field" }, make("label", { for: `ask-${ask.name}` }, ask.label), select)];
  }
  return [field(ask.name, ask.label, { required: true, inputmode: ask.kind === "number" ? "numeric" : undefined })];
}

function readField(form, ask) {
  if (ask.kind === "hands") {
    const hands = {};
    for (const input of form.querySelectorAll('input[name^="hand-"]')) {
      hands[input.name.slice(5)] = input.value.trim().toUpperCase().split(/[\s,]+/);
    }
    return hands;
  }
  const { value } = form.elements[ask.name];
  if (ask.kind === "number") return Number(value);
  if (ask.kind === "yes_no") return value === "yes";
  if (ask.kind === "json") return JSON.parse(value);
  return value.trim();
}

byId("ask-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sending || document.body.classList.contains("stale") || !event.target.reportValidity()) return;
  put(byId("ask-message"), say("sent"));
  sending = true;
  let done = false;
  try {
    done = await answer(event.target);
  } finally {
    sending = false;
  }
  if (done) {
    byId("ask").close();
    return;
  }
  for (const input of byId("ask-fields").querySelectorAll('input[type="password"]')) input.value = "";
});

byId("ask").addEventListener("close", () => {
  byId("ask-fields").replaceChildren(); // no PIN stays in the page
  answer = null;
});

const digits = [..."123456789", "clear", "0", "erase"];
byId("keypad").append(...digits.map((each) => make("button", {
  type: "button",
  class: "key",
  onclick: () => {
    const pin = byId("ask-fields").querySelector('[name="pin"]');
    if (each === "clear") pin.value = "";
    else if (each === "erase") pin.value = pin.value.slice(0, -1);
    else pin.value += each;
  },
}, each.length > 1 ? say(each) : each)));

for (const each of document.querySelectorAll("[data-close]")) {
  each.addEventListener("click", () => each.closest("dialog").close());
}
