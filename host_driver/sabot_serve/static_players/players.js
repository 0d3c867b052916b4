// The players' display: it shows what comes and sends nothing.
const SUITS = { S: "\u2660", H: "\u2665", D: "\u2666", C: "\u2663" };
const ROADS = ["bead_plate", "big_road", "big_eye_boy", "small_road", "cockroach_pig"];
const COLOURS = { banker: "#c4001d", player: "#0b4fb3", tie: "#0a7a34", red: "#c4001d", blue: "#0b4fb3" };
const STALE_MS = 2000;
const byId = (id) => document.getElementById(id);
let view = {};
let heard = null;

function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children);
  return element;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function hand(each) {
  const cards = each.cards.map((name) => {
    const suit = name.slice(-1);
    return make("span", suit === "H" || suit === "D" ? "card red" : "card", name.slice(0, -1) + SUITS[suit]);
  });
  return make("div", `hand ${each.tone}`, make("p", "name", each.name), make("p", "cards", ...cards),
    make("p", "points", each.points), make("p", "outcome", each.outcome));
}

function road(name, marks) {
  const size = 20;
  const columns = Math.max(12, ...marks.map((each) => each.column + 1));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${columns * size} ${6 * size}`);
  svg.setAttribute("class", "road");
  svg.setAttribute("width", columns * size);
  svg.setAttribute("height", 6 * size);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", name.replaceAll("_", " "));
  for (const each of marks) {
    const circle = document.createElementNS(svg.namespaceURI, "circle");
    const solid = name === "bead_plate" || name === "small_road";
    for (const [key, value] of Object.entries({
      cx: each.column * size + size / 2, cy: each.row * size + size / 2, r: size / 2 - 3,
      fill: solid ? COLOURS[each.what] ?? "none" : "none", stroke: COLOURS[each.what] ?? "#0a7a34", "stroke-width": 3,
    })) circle.setAttribute(key, value);
    svg.append(circle);
    if (each.ties) {
      const line = document.createElementNS(svg.namespaceURI, "path");
      line.setAttribute("d", `M${each.column * size + 3} ${each.row * size + size - 3}l${size - 6} ${6 - size}`);
      line.setAttribute("stroke", COLOURS.tie);
      line.setAttribute("stroke-width", 2);
      svg.append(line);
    }
  }
  return svg;
}

function show() {
  document.body.classList.remove("waiting");
  put(byId("table"), view.table);
  put(byId("round"), view.round ? byId("round").dataset.round.replace("%(round)s", view.round) : "");
  put(byId("phase"), view.phase);
  put(byId("void"), view.void);
  byId("hands").replaceChildren(...view.hands.map(hand));
  byId("roads").replaceChildren(...ROADS.filter((name) => view.roads[name]).map((name) => road(name, view.roads[name])));
  byId("meters").replaceChildren(...Object.entries(view.meters).map(([name, cents]) =>
    make("div", "", make("dt", "", name), make("dd", "", (cents / 100).toLocaleString("en-US", { minimumFractionDigits: 2 })))));
}

const source = new EventSource("/events");
source.addEventListener("change", (event) => {
  const { full, parts } = JSON.parse(event.data);
  view = full ? parts : { ...view, ...parts };
  heard = performance.now();
  show();
});
source.addEventListener("beat", () => { heard = performance.now(); });
source.addEventListener("error", () => {
  if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 1000);
});
setInterval(() => {
  const old = heard !== null && performance.now() - heard > STALE_MS;
  document.body.classList.toggle("stale", old);
  byId("stale").hidden = !old;
}, 200);
