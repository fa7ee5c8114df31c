"""A live map of a study in a notebook, drawn by the JavaScript of the page.

It needs `pip install "truvar[notebook]"`.

The page's modules import each other by file, which a widget cannot: its code is one text. `_bundle`
joins them, each in its own function, and replaces `api.js` by requests to Python.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from truvar.exceptions import InvalidArgumentError, import_optional
from truvar.messages import unknown_name

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy
    from truvar.study.suggestion import Suggestion

__all__ = ["live_map"]

_STATIC = Path(__file__).parent / "service" / "static"
_ENTRY = "domain-plot.js"  # the module whose `domainPlot` draws a study
_REPLACED = "api.js"  # the module that talks to the server
_IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"\./([\w.-]+)";\s*$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export\s+((?:async\s+)?(?:function\*?|class|const|let))\s+(\w+)", re.MULTILINE
)
_VARIABLES = re.compile(r"^:root(\[data-theme=\"dark\"\])?\s*\{([^}]*)\}", re.MULTILINE)
_THEMES = ("auto", "light", "dark")
_API = """const __api_js = {
  studyPath: (name) => `/studies/${encodeURIComponent(name)}`,
  get: (path) => ask(path),
};"""
_RENDER = """
const waiting = new Map(); // requests to Python by number
let lastRequest = 0;
let sendRequest = null;

function ask(path) {
  lastRequest += 1;
  const id = lastRequest;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    sendRequest({ id, path });
  });
}

function isDark() {
  const body = document.body.dataset;
  if (body.jpThemeLight !== undefined) return body.jpThemeLight === "false";
  if (body.vscodeThemeKind !== undefined) return body.vscodeThemeKind.includes("dark");
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function render({ model, el }) {
  sendRequest = (message) => model.send(message);
  model.on("msg:custom", ({ id, data, error }) => {
    const request = waiting.get(id);
    waiting.delete(id);
    if (error) request?.reject(new Error(error));
    else request?.resolve(data);
  });
  const theme = model.get("theme") === "auto" ? (isDark() ? "dark" : "light") : model.get("theme");
  const variables = document.createElement("style"); // colours are read from the root of the document
  variables.textContent = `:root { ${VARIABLES.light} ${theme === "dark" ? VARIABLES.dark : ""} }`;
  document.head.append(variables);
  const host = document.createElement("div");
  el.append(host);
  const shadow = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = `${STYLE} :host { color: var(--ink); background: var(--card); display: block; padding: .6rem; }`;
  const read = () => JSON.parse(model.get("view"));
  let view = read();
  const plot = __domain_plot_js.domainPlot({ current: () => view, writable: false }, () => {});
  shadow.append(style, plot.node);
  requestAnimationFrame(plot.redraw); // once it has a width
  const change = () => { view = read(); plot.redraw(); };
  model.on("change:view", change);
  return () => { model.off("change:view", change); variables.remove(); };
}
export default { render };
"""


def live_map(study: BaseStudy, theme: str = "auto") -> Any:
    """Return a widget with the map of a study, its layers and a legend, as the page has them.

    It is a callback too: `study.run(f, callbacks=[live_map])` redraws it after each measurement.
    Elsewhere `refresh()` redraws it.

    Args:
        study: The study, here or on a server; it is not changed.
        theme: "light", "dark", or "auto" for that of the notebook.

    Raises:
        MissingDependencyError: If anywidget is not installed.
        InvalidArgumentError: If there is no such theme.

    Example:
        >>> live = tv.notebook.live_map(study)
        >>> display(live)
        >>> study.run(measure, steps=30, callbacks=[live])
    """
    if theme not in _THEMES:
        raise InvalidArgumentError(unknown_name("theme", theme, _THEMES))
    return _widget_class()(study, theme)


def _bundle(entry: str = _ENTRY) -> str:
    """Return the modules of the page that an entry needs, as one text.

    Args:
        entry: Name of the module.
    """
    parts: dict[str, str] = {_REPLACED: _API}
    _add_module(entry, parts)
    return "\n".join(parts.values())


def _add_module(name: str, parts: dict[str, str]) -> None:
    """Add a module and those it imports, in the order in which they must be run."""
    if name in parts:
        return
    source = (_STATIC / name).read_text(encoding="utf-8")
    for _, imported in _IMPORT.findall(source):
        _add_module(imported, parts)
    body = _IMPORT.sub(
        lambda found: f"const {{{_renamed(found[1])}}} = {_variable(found[2])};", source
    )
    exported = [symbol for _, symbol in _EXPORT.findall(source)]
    body = _EXPORT.sub(r"\1 \2", body)
    parts[name] = (
        f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"
    )


def _variable(name: str) -> str:
    return "__" + re.sub(r"\W", "_", name)


def _renamed(names: str) -> str:
    """Return the names of an import as those of a destructuring assignment."""
    return re.sub(r"(\w+)\s+as\s+(\w+)", r"\1: \2", names)


@cache
def _code() -> str:
    """Return the code of the widget."""
    style = (_STATIC / "style.css").read_text(encoding="utf-8")
    light = " ".join(block for dark, block in _VARIABLES.findall(style) if not dark)
    dark = " ".join(block for dark, block in _VARIABLES.findall(style) if dark)
    rest = _VARIABLES.sub("", style)
    constants = f"const VARIABLES = {json.dumps({'light': light, 'dark': dark})};\nconst STYLE = {json.dumps(rest)};"
    return f"{constants}\n{_bundle()}\n{_RENDER}"


@cache
def _widget_class() -> Any:
    """Return the class of the widget, whose base is in an optional library."""
    base: Any = import_optional("anywidget", "a live map", "notebook").AnyWidget
    traitlets = import_optional("traitlets", "a live map", "notebook")
    from truvar.service import serializers

    class LiveMap(base):  # type: ignore[misc]
        """The map of a study as a widget."""

        _esm = _code()
        view = traitlets.Unicode().tag(sync=True)
        theme = traitlets.Unicode("auto").tag(sync=True)

        def __init__(self, study: BaseStudy, theme: str) -> None:
            super().__init__(view=_view(study), theme=theme)
            self._study = study
            self.on_msg(self._answer)

        def refresh(self) -> None:
            """Draw the present state of the study."""
            self.view = _view(self._study)

        def __call__(self, study: BaseStudy, suggestion: Suggestion, value: float) -> None:
            """Draw the present state of the study; a callback of `Study.run`."""
            self.refresh()

        def _answer(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
            """Send what the map asks for: the posterior on a plane through a point."""
            try:
                data = _plane(self._study, content["path"])
                self.send({"id": content["id"], "data": json.loads(serializers.encode(data))})
            except Exception as error:  # shown in the browser, where the request was made
                self.send({"id": content["id"], "error": str(error)})

    return LiveMap


def _view(study: BaseStudy) -> str:
    """Return everything that the page shows of a study, as JSON."""
    from truvar.service import serializers

    data = serializers.view(study)  # type: ignore[arg-type]
    return serializers.encode({**data, "name": study.name or "study"}).decode()


def _plane(study: BaseStudy, path: str) -> dict[str, Any]:
    """Return the plane that a request for a slice means."""
    from truvar.service import serializers

    query = parse_qs(urlsplit(path).query)
    columns = list(study.domain.columns)
    across = (columns.index(query["x"][0]), columns.index(query["y"][0]))
    at = np.array([float(value) for value in query["at"]])
    return serializers.posterior_slice(study, across, at)  # type: ignore[arg-type]
