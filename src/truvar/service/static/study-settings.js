// The dialog to rename or delete a study. Both need the name of the study as a confirmation.

import { download, post, studyPath } from "./api.js";
import { announce, el, field, runWithButton } from "./dom.js";

const LONGEST_NAME = 100; // characters

export function openSettings(name) {
  const alert = el("p", { class: "alert", role: "alert" });
  const newName = el("input", { type: "text", maxlength: LONGEST_NAME, required: true, autocomplete: "off", value: name });
  const rename = el("button", { class: "main", type: "submit" }, "Rename");
  const confirm = el("input", { type: "text", required: true, autocomplete: "off", oninput: () => { remove.disabled = confirm.value !== name; } });
  const remove = el("button", { class: "danger", type: "submit", disabled: true }, "Delete for good");
  const save = el("button", { type: "button", onclick: () => runWithButton(save, alert, () => download(`${studyPath(name)}/export`, `${name}.json`)) }, "Export it first");
  const dialog = el("dialog", { "aria-labelledby": "settings-title", onclose: () => dialog.remove() },
    el("h2", { id: "settings-title" }, "Rename or delete"),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      runWithButton(rename, alert, async () => {
        const answer = await post(`${studyPath(name)}/rename`, { name: newName.value.trim(), confirm: name });
        dialog.close();
        announce(`The study is now called ${answer.name}`);
        location.hash = `#/study/${encodeURIComponent(answer.name)}`;
      });
    } }, field("New name", newName, "those who have the old address will not find it"), el("p", { class: "row" }, rename)),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      runWithButton(remove, alert, async () => {
        await post(`${studyPath(name)}/delete`, { confirm: confirm.value });
        dialog.close();
        announce(`The study ${name} is deleted`);
        location.hash = "#/";
      }).finally(() => { remove.disabled = confirm.value !== name; });
    } }, field("Type the name of the study to delete it", confirm, "its measurements and its history are lost"),
    el("p", { class: "row" }, remove, save)),
    alert, el("p", { class: "row" }, el("span", { class: "grow" }), el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel")));
  document.body.append(dialog);
  dialog.showModal();
}
