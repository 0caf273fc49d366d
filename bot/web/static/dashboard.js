// Keeps an open page fresh: asks for it again and replaces the parts marked with data-live that have changed. Without
// this script the page works the same; it then reloads as a whole.
"use strict";

const shown = new Map();
const parts = () => document.querySelectorAll("[data-live]");
const every = () => Number(document.querySelector("[data-every]")?.dataset.every ?? 0) * 1000;

// What somebody is just marking, to copy it, stays.
const isSelected = (part) => !getSelection().isCollapsed && part.contains(getSelection().anchorNode);

function keepOpen(old, fresh) {
  const before = [...old.querySelectorAll("details")];
  [...fresh.querySelectorAll("details")].forEach((each, at) => {
    if (before[at]) each.open = before[at].open;
  });
}

function apply(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const old of parts()) {
    const fresh = page.getElementById(old.id);
    if (!fresh || old.dataset.version !== fresh.dataset.version) {
      // Another page stands there now, or another plan: all of it is read anew.
      location.reload();
      return;
    }
    const text = fresh.outerHTML;
    if (shown.get(old.id) === text || isSelected(old)) continue;
    shown.set(old.id, text);
    keepOpen(old, fresh);
    old.replaceWith(document.adoptNode(fresh));
  }
}

async function refresh() {
  if (!document.hidden) {
    try {
      const answer = await fetch(`${location.pathname}?live=1`, { redirect: "error" });
      if (answer.status === 401 || answer.status === 404) return location.reload();
      if (answer.ok) apply(await answer.text());
    } catch {
      // The bot restarts or the network is away; the next turn asks again.
    }
  }
  if (every()) setTimeout(refresh, every());
}

if (every()) setTimeout(refresh, every());
