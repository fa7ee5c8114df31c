// Places by the names that their rows have in the user's own table; otherwise by their coordinates.

import { formatPoint } from "./format.js";

// Whether the row of a place {label, index} has a name that says more than its position.
export const isNamed = ({ label, index }) => label !== null && label !== undefined && String(label) !== String(index);

// A place {point, label, index}: its name, and its coordinates in parentheses; without a name the coordinates.
export function formatPlace(place, columns) {
  const coordinates = formatPoint(place.point, columns);
  return isNamed(place) ? `${place.label} (${coordinates})` : coordinates;
}

// The name of the point with that position among those of a view, or null.
export const labelAt = (view, k) => view.labels?.[k] ?? null;

// The position of the point with a name among those of a view; -1 if there is none, or several.
export function withLabel(view, label) {
  const wanted = label.trim();
  const first = view.labels ? view.labels.indexOf(wanted) : -1;
  return first >= 0 && view.labels.indexOf(wanted, first + 1) < 0 ? first : -1;
}
