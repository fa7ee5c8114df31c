// Coastlines from a GeoJSON file that the user chooses; they stay in this browser and are drawn behind the candidates.

import { el, field } from "./dom.js";

const STORED = "truvar-coastlines";
const MOST_CHARACTERS = 2_000_000; // of a file that is kept for the next visit

// The lines and the borders of polygons of a GeoJSON object, each a list of [longitude, latitude].
export function linesOf(shape) {
  if (!shape || typeof shape !== "object") return [];
  switch (shape.type) {
    case "FeatureCollection": return (shape.features ?? []).flatMap(linesOf);
    case "Feature": return linesOf(shape.geometry);
    case "GeometryCollection": return (shape.geometries ?? []).flatMap(linesOf);
    case "LineString": return [shape.coordinates];
    case "MultiLineString": case "Polygon": return shape.coordinates;
    case "MultiPolygon": return shape.coordinates.flat();
    default: return [];
  }
}

function stored() {
  try {
    return linesOf(JSON.parse(localStorage.getItem(STORED) ?? "null"));
  } catch {
    return []; // the browser keeps nothing, or something else
  }
}

export function coastlineChoice(changed) {
  let lines = stored();
  const alert = el("p", { class: "alert", role: "alert" });
  const remove = el("button", { type: "button", class: "quiet", hidden: lines.length === 0, onclick: () => {
    lines = [];
    input.value = "";
    remove.hidden = true;
    try { localStorage.removeItem(STORED); } catch { /* nothing was kept */ }
    changed();
  } }, "Remove coastlines");
  const input = el("input", { type: "file", accept: ".geojson,.json,application/geo+json", onchange: async () => {
    if (!input.files.length) return;
    alert.textContent = "";
    try {
      const text = await input.files[0].text();
      const found = linesOf(JSON.parse(text));
      if (!found.length) throw new Error("no lines or polygons");
      lines = found;
      if (text.length <= MOST_CHARACTERS) try { localStorage.setItem(STORED, text); } catch { /* drawn, but not kept */ }
    } catch (error) {
      alert.textContent = `${input.files[0].name} has no coastlines in GeoJSON (${error.message}).`;
    }
    remove.hidden = lines.length === 0;
    changed();
  } });
  const node = el("details", {}, el("summary", {}, "Coastlines"), field("File", input, "GeoJSON with lines or polygons in degrees; it stays in this browser"), alert, el("p", { class: "row" }, remove));
  return { node, lines: () => lines };
}
