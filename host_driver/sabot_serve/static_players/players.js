// The players' display: it shows what comes and sends nothing.
const SUITS = { S: "\u2660", H: "\u2665", D: "\u2666", C: "\u2663" };
const ROADS = ["bead_plate", "big_road", "big_eye_boy", "small_road", "cockroach_pig"];
const COLOURS = { banker: "#c4001d", player: "#0b4fb3", tie: "#0a7a34", red: "#c4001d", blue: "#0b4fb3" };
const STALE_MS = 2000;
const byId = (id) => document.getElementById(id);
const WORDS = JSON.parse(byId("words").textContent);
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
    make("p", each.points.length > 1 ? "points words" : "points", each.points), make("p", "outcome", each.outcome));
}

// How a road is drawn: columns that fit, the size of a cell, and its mark.
const DRAWN = {
  bead_plate: { columns: 14, size: 30, mark: "letter" },
  big_road: { columns: 32, size: 30, mark: "ring" },
  big_eye_boy: { columns: 22, size: 15, mark: "ring" },
  small_road: { columns: 22, size: 15, mark: "dot" },
  cockroach_pig: { columns: 22, size: 15, mark: "slash" },
};

function svgElement(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function road(name, marks) {
  const { columns, size, mark } = DRAWN[name];
  const last = Math.max(columns - 1, ...marks.map((each) => each.column));
  const first = last - columns + 1; // the newest columns stay in sight
  const svg = svgElement("svg", { viewBox: `0 0 ${columns * size} ${6 * size}`, role: "img", "aria-label": WORDS[name] });
  for (let column = 1; column < columns; column += 1) svg.append(svgElement("path", { class: "grid", d: `M${column * size} 0V${6 * size}` }));
  for (let row = 1; row < 6; row += 1) svg.append(svgElement("path", { class: "grid", d: `M0 ${row * size}H${columns * size}` }));
  for (const each of marks.filter((one) => one.column >= first)) {
    const [x, y] = [(each.column - first) * size, each.row * size];
    const colour = COLOURS[each.what] ?? COLOURS.tie;
    if (mark === "slash") {
      svg.append(svgElement("path", { d: `M${x + 2} ${y + size - 2}l${size - 4} ${4 - size}`, stroke: colour, "stroke-width": 3 }));
    } else if (each.what || !each.ties) {
      const fill = mark === "ring" ? "none" : colour;
      svg.append(svgElement("circle", { cx: x + size / 2, cy: y + size / 2, r: size / 2 - size / 10, fill, stroke: colour, "stroke-width": size / 10 }));
    }
    if (mark === "letter") {
      const text = svgElement("text", { x: x + size / 2, y: y + size * 0.7, "text-anchor": "middle", "font-size": size * 0.56, fill: "#fff", "font-weight": 700 });
      text.textContent = WORDS[`bead_${each.what}`];
      svg.append(text);
    }
    if (each.ties) {
      svg.append(svgElement("path", { d: `M${x + 4} ${y + size - 4}l${size - 8} ${8 - size}`, stroke: COLOURS.tie, "stroke-width": 3 }));
      if (each.ties > 1) {
        const text = svgElement("text", { x: x + size / 2, y: y + size * 0.7, "text-anchor": "middle", "font-size": size * 0.56, fill: "#063d1a", "font-weight": 800 });
        text.textContent = each.ties;
        svg.append(text);
      }
    }
  }
  return make("figure", `road ${name}`, make("figcaption", "", WORDS[name]), svg);
}

function show() {
  document.body.classList.remove("waiting");
  put(byId("table"), view.table);
  put(byId("round"), view.round ? WORDS.round.replace("%(round)s", view.round) : "");
  put(byId("phase"), view.phase);
  put(byId("void"), view.void);
  byId("hands").replaceChildren(...view.hands.map(hand));
  document.body.classList.toggle("coup", ROADS.some((name) => view.roads[name]));
  const drawn = ROADS.filter((name) => view.roads[name]).map((name) => road(name, view.roads[name]));
  byId("roads").replaceChildren(...drawn.slice(0, 2), ...(drawn.length > 2 ? [make("div", "derived", ...drawn.slice(2))] : []));
  byId("meters").replaceChildren(...Object.entries(view.meters).map(([name, cents]) =>
    make("div", "", make("dt", "", name), make("dd", "", (cents / 100).toLocaleString("en-US", { minimumFractionDigits: 2 })))));
}

const source = new EventSource(`/events?lang=${document.documentElement.lang}`);
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
