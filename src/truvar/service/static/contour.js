// The contour of a field on a grid at a level, by marching squares, as the path of an SVG element.

// `value(i, j)` is the field at (xs[i], ys[j]); `px` and `py` are scales from data to pixels.
export function contour(xs, ys, value, level, px, py) {
  const parts = [];
  for (let i = 0; i + 1 < xs.length; i += 1) {
    for (let j = 0; j + 1 < ys.length; j += 1) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const heights = corners.map(([a, b]) => value(a, b) - level);
      if (heights.some((height) => !Number.isFinite(height))) continue;
      const crossings = [];
      for (let k = 0; k < 4; k += 1) {
        const next = (k + 1) % 4;
        if (heights[k] >= 0 === heights[next] >= 0) continue;
        const t = heights[k] / (heights[k] - heights[next]); // of the way from corner a to corner b
        const a = corners[k];
        const b = corners[next];
        const x = px(xs[a[0]]) * (1 - t) + px(xs[b[0]]) * t;
        const y = py(ys[a[1]]) * (1 - t) + py(ys[b[1]]) * t;
        crossings.push(`${x.toFixed(1)} ${y.toFixed(1)}`);
      }
      if (crossings.length === 2) parts.push(`M${crossings[0]}L${crossings[1]}`);
      if (crossings.length === 4) {
        // A saddle: the mean of the corners decides which of them belong together.
        const middle = heights.reduce((sum, height) => sum + height, 0);
        const [p, q, r, s] = (middle >= 0) === (heights[0] >= 0) ? [0, 1, 2, 3] : [3, 0, 1, 2];
        parts.push(`M${crossings[p]}L${crossings[q]}M${crossings[r]}L${crossings[s]}`);
      }
    }
  }
  return parts.join("");
}
