// Where a field on a grid crosses a level: marching squares, as one SVG path.

// `value(i, j)` at (xs[i], ys[j]); `px`, `py` take data to pixels.
export function contour(xs, ys, value, level, px, py) {
  const parts = [];
  for (let i = 0; i + 1 < xs.length; i += 1) {
    for (let j = 0; j + 1 < ys.length; j += 1) {
      const corner = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const above = corner.map(([a, b]) => value(a, b) - level);
      if (above.some((v) => !Number.isFinite(v))) continue;
      const crossings = [];
      for (let k = 0; k < 4; k += 1) {
        const [from, to] = [above[k], above[(k + 1) % 4]];
        if (from >= 0 === to >= 0) continue;
        const t = from / (from - to);
        const [a, b] = [corner[k], corner[(k + 1) % 4]];
        const x = px(xs[a[0]]) * (1 - t) + px(xs[b[0]]) * t;
        const y = py(ys[a[1]]) * (1 - t) + py(ys[b[1]]) * t;
        crossings.push(`${x.toFixed(1)} ${y.toFixed(1)}`);
      }
      if (crossings.length === 2) parts.push(`M${crossings[0]}L${crossings[1]}`);
      if (crossings.length === 4) {
        // A saddle: the middle decides which corners belong together.
        const turn = (above.reduce((s, v) => s + v, 0) >= 0) === (above[0] >= 0) ? [0, 1, 2, 3] : [3, 0, 1, 2];
        parts.push(`M${crossings[turn[0]]}L${crossings[turn[1]]}M${crossings[turn[2]]}L${crossings[turn[3]]}`);
      }
    }
  }
  return parts.join("");
}
