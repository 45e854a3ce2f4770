// Questions to the page's own server. The key proves that this page asks, and not another program's on
// another port of this machine, to which a browser sends the same cookies.

const NAME = "keyway-page";

function key() {
  const given = document.querySelector('meta[name="keyway-page"]').content;
  if (given) localStorage.setItem(NAME, given);
  return localStorage.getItem(NAME) ?? "";
}

/** What an answer says that is not what was asked for. */
export class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(`/api/${path}`, { ...options, signal: AbortSignal.timeout(35000) });
  } catch {
    throw new Refused(0, "keyway web does not answer; is it still running?");
  }
  let value;
  try {
    value = await response.json();
  } catch {
    throw new Refused(response.status, "keyway web answers something that is not understood");
  }
  if (!response.ok) throw new Refused(response.status, value.error ?? `status ${response.status}`);
  return value;
}

/** Asks for something. */
export function ask(path) {
  return answer(path, { headers: { "x-keyway-page": key() } });
}

/** Has something done. */
export function tell(path, body = {}) {
  const headers = { "x-keyway-page": key(), "content-type": "application/json" };
  return answer(path, { method: "POST", headers, body: JSON.stringify(body) });
}

key();
