// From data to pixels and back, with tick marks; linear or logarithmic.

export function scale(low, high, from, to, log = false) {
  if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, high + 0.5];
  const f = log ? Math.log : (v) => v;
  const g = log ? Math.exp : (v) => v;
  const [a, b] = [f(low), f(high)];
  const to_pixels = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
  to_pixels.invert = (pixel) => g(a + ((pixel - from) / (to - from)) * (b - a));
  to_pixels.low = low;
  to_pixels.high = high;
  to_pixels.ticks = (count) => (log ? decades(low, high, count) : steps(low, high, count));
  return to_pixels;
}

function steps(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

function decades(low, high, count) {
  const ticks = [];
  const span = Math.log10(high / low);
  const every = span > 2 * count ? Math.ceil(span / count) : 1;
  const within = span < count / 3 ? [1, 2, 5] : [1];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += every) {
    for (const m of within) {
      const tick = m * 10 ** e;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks.length > 1 ? ticks : [low, high];
}

// The borders between neighbouring values, half a step beyond the ends.
export function edges(values, log) {
  const f = log ? Math.log : (v) => v;
  const g = log ? Math.exp : (v) => v;
  const at = values.map(f);
  if (at.length === 1) return [g(at[0] - 0.5), g(at[0] + 0.5)];
  const middle = at.slice(1).map((v, k) => (v + at[k]) / 2);
  return [2 * at[0] - middle[0], ...middle, 2 * at.at(-1) - middle.at(-1)].map(g);
}

export const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
