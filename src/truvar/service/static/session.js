// Who is logged in: the token, in the session storage of the tab, which a reload keeps and closing the tab clears.

import { forgetAnswers } from "./kept-answers.js";

const TOKEN_KEY = "truvar-token";

export const token = () => sessionStorage.getItem(TOKEN_KEY) ?? "";

// Another token may see other studies: nothing is kept of what the one before showed. A tab without a token may log in
// without a network, so that all is kept until the server has accepted the token (`forgetOthers`).
export async function setToken(text) {
  const former = token();
  if (text === former) return;
  if (text) sessionStorage.setItem(TOKEN_KEY, text);
  else sessionStorage.removeItem(TOKEN_KEY);
  if (former) await forgetAnswers();
}

// A token can be given behind the # of the address. Browsers do not send that part; it is removed immediately.
export async function takeTokenFromAddress() {
  const match = location.hash.match(/[#&]token=([^&]+)/);
  if (!match) return;
  history.replaceState(null, "", location.pathname + location.hash.replace(/[#&]?token=[^&]+/, "").replace(/^$/, "#/"));
  await setToken(decodeURIComponent(match[1]));
}
