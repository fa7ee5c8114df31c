// Colours of the maps: viridis for values, a ramp of violet for uncertainty; the classes' colours come from the style sheet.

const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const DOUBT = ["#f7f4f9", "#dcd6ea", "#bcb2d8", "#9a8bc3", "#7b62ae", "#5c3a96", "#3f1a73"];

const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

function ramp(stops) {
  const colours = stops.map(channels);
  return Array.from({ length: 256 }, (_, k) => {
    const at = (k / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(at), colours.length - 2);
    const mixed = colours[low].map((c, i) => Math.round(c + (colours[low + 1][i] - c) * (at - low)));
    return `rgb(${mixed.join(",")})`;
  });
}

export const RAMPS = { mean: ramp(VIRIDIS), sd: ramp(DOUBT) };

export function shade(name, value, low, high) {
  const share = high > low ? (value - low) / (high - low) : 0.5;
  return RAMPS[name][Math.max(0, Math.min(255, Math.round(share * 255)))];
}

// The colours of H, M and L: for an optimum, M is what may still be it and the rest is ruled out.
export function classes(levelSet) {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  if (levelSet) return { H: named("--above"), M: named("--open"), L: named("--below") };
  return { H: named("--out"), M: named("--possible"), L: named("--out") };
}

// Measurements from light (first) to dark (last).
export function order(k, count) {
  const grey = Math.round(235 - (count > 1 ? k / (count - 1) : 1) * 215);
  return `rgb(${grey},${grey},${grey})`;
}

export const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
