// Linear and logarithmic scales from data to pixels, with tick marks; and the values of axes.

const identity = (value) => value;

// Returns a function from [low, high] to pixels [from, to], with the methods ticks(count) and invert(pixels).
export function scale(low, high, from, to, log = false) {
  if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, high + 0.5];
  const transform = log ? Math.log : identity;
  const start = transform(low);
  const length = transform(high) - start;
  const toPixels = (value) => from + ((transform(value) - start) / length) * (to - from);
  const inverse = log ? Math.exp : identity;
  toPixels.invert = (pixels) => inverse(start + ((pixels - from) / (to - from)) * length);
  toPixels.ticks = (count) => (log ? logTicks(low, high, count) : linearTicks(low, high, count));
  return toPixels;
}

function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low, high, count) {
  const ticks = [];
  const span = Math.log10(high / low);
  const every = span > 2 * count ? Math.ceil(span / count) : 1;
  const factors = span < count / 3 ? [1, 2, 5] : [1];
  for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.ceil(Math.log10(high)); exponent += every) {
    for (const factor of factors) {
      const tick = factor * 10 ** exponent;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks.length > 1 ? ticks : [low, high];
}

// The borders between neighbouring values, and half a step beyond the ends.
export function edges(values, log) {
  const inverse = log ? Math.exp : identity;
  const positions = values.map(log ? Math.log : identity);
  const [first] = positions;
  const last = positions.at(-1);
  if (positions.length === 1) return [inverse(first - 0.5), inverse(first + 0.5)];
  const middles = positions.slice(1).map((position, k) => (position + positions[k]) / 2);
  return [2 * first - middles[0], ...middles, 2 * last - middles.at(-1)].map(inverse);
}

export const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

// The smallest and the largest finite value; [0, 1] if there is none.
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
