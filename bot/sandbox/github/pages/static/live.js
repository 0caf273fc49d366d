// Keeps a page fresh: asks for it every second while something is under way, else every other second, and replaces
// the parts that are marked with data-live and have changed.
// What somebody has opened, typed or is choosing stays as it is.
"use strict";

const shown = new Map();
const inUse = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");

function keepOpen(old, fresh) {
  const name = (each, at) => each.id || `${at} ${each.querySelector(":scope > summary")?.textContent ?? ""}`;
  const known = new Map();
  old.querySelectorAll("details").forEach((each, at) => known.set(name(each, at), each.open));
  fresh.querySelectorAll("details").forEach((each, at) => {
    const open = known.get(name(each, at));
    if (open !== undefined) each.open = open;
  });
}

function replace(old, fresh) {
  keepOpen(old, fresh);
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// Where all children have ids only those that changed are replaced, so that a reader keeps the place.
function update(part, fresh) {
  const children = [...fresh.children];
  if (!children.length || [...children, ...part.children].some((each) => !each.id)) {
    replace(part, fresh);
    return;
  }
  const wanted = new Set(children.map((each) => each.id));
  [...part.children].forEach((each) => wanted.has(each.id) || each.remove());
  children.forEach((each, at) => {
    const html = each.outerHTML;
    let twin = [...part.children].find((known) => known.id === each.id);
    if (!twin) {
      part.insertBefore(each, part.children[at] ?? null);
    } else if (shown.get(each.id) !== html) {
      replace(twin, each);
    } else if (part.children[at] !== twin) {
      part.insertBefore(twin, part.children[at]);
    }
    shown.set(each.id, html);
  });
}


function apply(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  document.querySelectorAll("[data-live]").forEach((part) => {
    const twin = fresh.getElementById(part.id);
    if (!twin || inUse(part)) return;
    const now = twin.innerHTML;
    if (shown.get(part.id + " inside") === now) return;
    shown.set(part.id + " inside", now);
    if (part.className !== twin.className) part.className = twin.className;
    update(part, document.adoptNode(twin));
    // Why a merge was refused may hold no longer.
    if (part.id === "mergebox") document.querySelector(".notice")?.classList.add("past");
  });
}

let tag = "";
async function refresh() {
  if (document.hidden) return;
  try {
    const headers = tag ? { "If-None-Match": tag } : {};
    const answer = await fetch(document.body.dataset.path + location.search, { headers, cache: "no-store" });
    if (answer.status !== 200) return;
    tag = answer.headers.get("ETag") ?? "";
    apply(await answer.text());
  } catch {
    // The sandbox is stopped; the next round asks again.
  }
}

document.querySelectorAll("[data-live]").forEach((part) => {
  shown.set(part.id + " inside", part.innerHTML);
  [...part.children].forEach((each) => each.id && shown.set(each.id, each.outerHTML));
});
// A refused form was shown at its own address, which cannot be loaded again.
if (location.pathname !== document.body.dataset.path) history.replaceState(null, "", document.body.dataset.path);
(async function loop() {
  await refresh();
  setTimeout(loop, document.querySelector(".dot.busy") ? 1000 : 2000);
})();
document.addEventListener("click", (event) => {
  document.querySelectorAll("details.menu[open]").forEach((menu) => menu.contains(event.target) || (menu.open = false));
});
