// Colours of the plots: viridis for values, violet for uncertainty, blue to orange or grey to brown for probabilities; those of the classes come from the style sheet.

import { classOrder } from "./sides.js";

const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const BLUE_TO_ORANGE = ["#5d9bc9", "#a9c8e0", "#dedede", "#efb080", "#e66100"]; // as the other side, undecided, the side asked for
const GREY_TO_BROWN = ["#d9d9d9", "#f3c565", "#e69f00", "#b86800", "#8a3b00"]; // from ruled out to probable
const VIOLET = ["#f7f4f9", "#dcd6ea", "#bcb2d8", "#9a8bc3", "#7b62ae", "#5c3a96", "#3f1a73"];

const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

// 256 colours between the stops.
function colourMap(stops) {
  const colours = stops.map(channels);
  return Array.from({ length: 256 }, (_, k) => {
    const position = (k / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(position), colours.length - 2);
    const mixed = colours[low].map((channel, i) => Math.round(channel + (colours[low + 1][i] - channel) * (position - low)));
    return `rgb(${mixed.join(",")})`;
  });
}

export const COLOUR_MAPS = { mean: colourMap(VIRIDIS), sd: colourMap(VIOLET), above: colourMap(BLUE_TO_ORANGE), optimum: colourMap(GREY_TO_BROWN) };

// The name of the colour map of a layer.
export function colourMapName(layer, levelSet) {
  if (layer !== "probability") return layer;
  return levelSet ? "above" : "optimum";
}

export function valueColour(name, value, low, high) {
  const share = high > low ? (value - low) / (high - low) : 0.5;
  return COLOUR_MAPS[name][Math.max(0, Math.min(255, Math.round(share * 255)))];
}

const property = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The colours of above (H), undecided (M) and below (L); --above is the colour of the side asked for, which is below where `sign` is -1.
// For an optimum, M is what can be it, and the rest is ruled out.
export function classColours(levelSet, sign) {
  if (levelSet) {
    const [asked, undecided, other] = classOrder({ sign });
    return { [asked]: property("--above"), [undecided]: property("--undecided"), [other]: property("--below") };
  }
  return { H: property("--ruled-out"), M: property("--possible"), L: property("--ruled-out") };
}

const BANDS = [[93, 155, 201], [255, 240, 190], [230, 97, 0]]; // from the lowest band over the middle to the highest

// The colours of so many bands between thresholds, from the lowest, as the figures of the report have them.
export function bandColours(count) {
  return Array.from({ length: count }, (_, k) => {
    const position = (2 * k) / Math.max(count - 1, 1);
    const first = Math.min(Math.floor(position), 1);
    const mixed = BANDS[first].map((channel, i) => Math.round(channel + (BANDS[first + 1][i] - channel) * (position - first)));
    return `rgb(${mixed.join(",")})`;
  });
}

// A function from the index of a point to the colour of its class. `data` has classes, levelSet, sign, and bands or null.
export function pointClassColour(data) {
  const colours = classColours(data.levelSet, data.sign);
  if (!data.bands) return (k) => colours[data.classes[k]];
  const ofBand = bandColours(data.bands.names.length);
  return (k) => ofBand[data.bands.of[k]] ?? colours.M;
}

// Measurements from light (first) to dark (last).
export function orderColour(k, count) {
  const share = count > 1 ? k / (count - 1) : 1;
  const grey = Math.round(235 - share * 215);
  return `rgb(${grey},${grey},${grey})`;
}

export const inkColour = () => property("--ink");
