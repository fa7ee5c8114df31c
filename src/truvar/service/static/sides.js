// The two sides of a threshold as the page shows them: the one that is asked for comes first and stands out.

export const CLASS_NAMES = { H: "above", M: "undecided", L: "below" };

// The letters of the class that is asked for, of undecided, and of the other one.
export const classOrder = ({ sign }) => (sign < 0 ? ["L", "M", "H"] : ["H", "M", "L"]);

// The letter whose colour a class has: that of H for the side asked for.
export const paletteLetter = (view, letter) => "HML"[classOrder(view).indexOf(letter)];

// The probability that a point is on the side asked for; `view.probability` is that of lying above. For an optimum, that of being it.
export function askedProbability({ level_set: levelSet, sign, probability }) {
  return levelSet && sign < 0 ? probability.map((above) => 1 - above) : probability;
}

// The share of the points on the side asked for; `view.result.share_above` is that of the points above.
export function askedShare({ result, sign }) {
  const { mean, low, high } = result.share_above;
  return sign < 0 && mean !== null ? { mean: 1 - mean, low: 1 - high, high: 1 - low } : { mean, low, high };
}
