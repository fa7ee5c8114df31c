// Excludes a region of the map: it is drawn with mouse, pen or finger, as a rectangle or a lasso, or its limits are typed.

import { el, field, numberInput, radioButtons, replace, runWithButton, svg } from "./dom.js";
import { count, countNoun, formatCoordinate, parseNumber } from "./format.js";

const SHORTEST = 6; // pixels; a shorter stroke is a slip
const STEP = 3; // pixels between two corners of a lasso
const MOST_CORNERS = 400; // of a lasso that is sent
const TOOLS = [["rectangle", "Rectangle"], ["lasso", "Lasso"]];

// Whether the two columns of a map have numbers on straight or logarithmic axes, so that a region has limits.
export const canDraw = (columns) => columns.every((column) => !column.choices && !column.date);

// `drawing` is a map; `columns()` returns the two that it shows, `points()` their coordinates [x[], y[]] at the points that
// are counted. `study` has current() and tell(), see suggestions.js.
export function regionDrawing(study, drawing, columns, points) {
  let tool = "rectangle";
  let corners = []; // [x, y] in the units of the columns
  let over = ""; // the columns that the corners are about
  const layer = svg("svg", { class: "drawn-region", hidden: true, "aria-hidden": "true" });
  const alert = el("p", { class: "alert", role: "alert" });
  const message = el("p", { class: "message", role: "status" });
  const inside = el("p", { class: "note", role: "status" });
  const why = el("input", { type: "text", autocomplete: "off", maxlength: 2000 });
  const limits = [0, 1].map(() => [numberInput({ oninput: typed }), numberInput({ oninput: typed })]);
  const limitFields = el("div", { class: "fields" });
  const exclude = el("button", { type: "submit", class: "main" }, "Exclude this region");
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); runWithButton(exclude, alert, send); } },
    radioButtons("Shape of the region", TOOLS, tool, (name) => { tool = name; clear(); }),
    el("p", { class: "note" }, "Draw over the map. Points inside are not suggested until you allow them again.",
      study.current().columns.length > 2 ? " The region holds at every value of the other columns." : ""),
    limitFields, inside, field("Reason", why, "for the history, if you like"), el("p", { class: "row" }, exclude,
      el("button", { type: "button", class: "quiet", onclick: () => { node.open = false; } }, "Cancel")), alert);
  const node = el("details", { class: "region", ontoggle: () => toggle() }, el("summary", {}, "Exclude a region"), form);
  drawing.node.append(layer);

  function toggle() {
    drawing.setPicking(!node.open);
    drawing.node.classList.toggle("drawing", node.open);
    layer.toggleAttribute("hidden", !node.open);
    clear();
    if (!node.open) return;
    message.textContent = "";
    drawing.node.scrollIntoView({ block: "nearest" });
  }

  function forget() {
    corners = [];
    limits.flat().forEach((input) => { input.value = ""; });
  }

  function clear() {
    forget();
    alert.textContent = "";
    show();
  }

  // -- the shape that is drawn

  const place = (event) => {
    const { box } = drawing.frame();
    const area = drawing.node.getBoundingClientRect();
    return [Math.max(box.left, Math.min(box.right, event.clientX - area.left)), Math.max(box.top, Math.min(box.bottom, event.clientY - area.top))];
  };
  const inUnits = ([px, py]) => { const { x, y } = drawing.frame(); return [x.invert(px), y.invert(py)]; };
  let stroke = null; // pixels of the stroke that is being drawn

  drawing.node.addEventListener("pointerdown", (event) => {
    if (!node.open || !drawing.frame() || event.button !== 0 || !event.isPrimary) return;
    event.preventDefault();
    drawing.node.setPointerCapture(event.pointerId);
    stroke = [place(event)];
  });
  drawing.node.addEventListener("pointermove", (event) => {
    if (!stroke || !event.isPrimary) return;
    const here = place(event);
    const last = stroke.at(-1);
    if (tool === "rectangle") stroke = [stroke[0], here];
    else if (Math.hypot(here[0] - last[0], here[1] - last[1]) >= STEP) stroke.push(here);
    take(stroke);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    drawing.node.addEventListener(name, () => {
      if (!stroke) return;
      const [xs, ys] = [0, 1].map((k) => stroke.map((at) => at[k]));
      const size = (values) => Math.max(...values) - Math.min(...values);
      if (name === "pointercancel" || Math.max(size(xs), size(ys)) < SHORTEST) clear();
      stroke = null;
    });
  }

  function take(pixels) {
    const every = Math.ceil(pixels.length / MOST_CORNERS);
    corners = pixels.filter((_, k) => k % every === 0).map(inUnits);
    if (tool === "rectangle" && corners.length === 2) {
      limits.forEach((pair, k) => {
        const ends = corners.map((corner) => corner[k]).sort((a, b) => a - b);
        pair.forEach((input, end) => { input.value = roundedText(ends[end], columns()[k]); });
      });
      readLimits();
    }
    show();
  }

  // -- the same typed

  function typed() {
    readLimits();
    show();
  }

  function readLimits() {
    const [[left, right], [low, high]] = limits.map((pair) => pair.map((input) => parseNumber(input.value)));
    const isGiven = [left, right, low, high].every(Number.isFinite);
    corners = isGiven ? [[Math.min(left, right), Math.min(low, high)], [Math.max(left, right), Math.max(low, high)]] : [];
  }

  const ring = () => (tool === "lasso" ? corners : rectangle(corners));
  const isShape = () => (tool === "lasso" ? corners.length >= 3 : corners.length === 2);

  function numberInside() {
    const [xs, ys] = points();
    const isInside = tool === "lasso" ? (x, y) => contains(corners, x, y)
      : (x, y) => corners[0][0] <= x && x <= corners[1][0] && corners[0][1] <= y && y <= corners[1][1];
    let found = 0;
    for (let k = 0; k < xs.length; k += 1) if (isInside(xs[k], ys[k])) found += 1;
    return found;
  }

  function show() {
    const frame = drawing.frame();
    const names = columns().map((column) => column.label);
    const shown = JSON.stringify(columns().map((column) => column.name));
    if (shown !== over) forget(); // limits of a latitude are none of a depth
    over = shown;
    replace(limitFields, tool === "lasso" ? [] : limits.flatMap((pair, k) => [field(`${names[k]} from`, pair[0]), field(`${names[k]} to`, pair[1])]));
    const view = study.current();
    const found = isShape() ? numberInside() : 0;
    inside.textContent = isShape() ? `${countNoun(found, "point")} of ${count(view.shown)}${view.shown < view.points ? " drawn" : ""} inside.` : "";
    exclude.disabled = !isShape() || (found === 0 && view.kind !== "box"); // between the points of a box there are others
    layer.setAttribute("viewBox", `0 0 ${drawing.node.clientWidth} ${drawing.node.clientHeight}`);
    const path = frame && isShape() ? `M${ring().map(([x, y]) => `${frame.x(x).toFixed(1)} ${frame.y(y).toFixed(1)}`).join("L")}Z` : null;
    replace(layer, path ? [svg("path", { class: "under", d: path }), svg("path", { d: path })] : []);
  }

  async function send() {
    const [x, y] = columns();
    const reason = why.value.trim() || undefined;
    const text = tool === "lasso" ? `the area drawn over ${x.label} and ${y.label}`
      : limits.map((pair, k) => `${columns()[k].label} ${pair[0].value} to ${pair[1].value}`).join(", ");
    const [[left, low], [right, high]] = tool === "lasso" ? [[], []] : corners;
    const body = tool === "lasso" ? { polygon: { rings: [corners], columns: [x.name, y.name] } } : { region: { [x.name]: [left, right], [y.name]: [low, high] } };
    const found = numberInside();
    const answer = await study.tell("exclude", { ...body, reason }, `excluded: ${text}`);
    message.textContent = answer ? `Excluded: ${countNoun(found, "point")}. "Not suggested" lists the region, with a button to allow it again.`
      : "Kept in this browser: the exclusion is sent when the server can be reached.";
    why.value = "";
    node.open = false;
  }

  show();
  return { node: el("div", {}, message, node), redraw: show };
}

const rectangle = (corners) => {
  if (corners.length !== 2) return [];
  const [[left, low], [right, high]] = corners;
  return [[left, low], [right, low], [right, high], [left, high]];
};

// Whether a point lies inside a ring: an odd number of edges is to its right.
function contains(ring, x, y) {
  let isInside = false;
  for (let k = 0; k < ring.length; k += 1) {
    const [x1, y1] = ring[k];
    const [x2, y2] = ring[(k + 1) % ring.length];
    if ((y1 > y) !== (y2 > y) && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1)) isInside = !isInside;
  }
  return isInside;
}

// A limit with a digit more than the points need, so that a border lies between two of them.
function roundedText(value, column) {
  const decimals = column.decimals === null || column.decimals === undefined ? 6 : column.decimals + 1;
  return formatCoordinate(value, { ...column, decimals }).replaceAll(",", "").replaceAll("\u2212", "-");
}
