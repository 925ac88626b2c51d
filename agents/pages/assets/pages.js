// Keeps a page up to date. When the worker says that something changed, the script fetches the page again and morphs
// it in place, so that focus, scrolling and opened details stay. Without this script every page works, but does not
// update itself.
(() => {
  "use strict";
  const LEAST_PAUSE_MS = 1000; // between two fetches of a page
  const AGES_MS = 30000; // longest time between two fetches: the page shows how long ago things were
  const main = document.getElementById("main");
  const live = document.getElementById("live");
  if (!main || !live) return;
  const SLOW = main.hasAttribute("data-still") ? "not live" : "not live: fetched again every 30 s";

  let stale = false;
  let fetching = false;
  let refused = false; // the worker sends this page no events, because too many pages are open
  let pauseMs = LEAST_PAUSE_MS;
  let fetchedAt = Date.now();
  let shown = main.dataset.revision;

  const tell = (text, state) => {
    if (live.textContent !== text) live.textContent = text;
    live.dataset.state = state;
  };

  const tellGood = () => (refused ? tell(SLOW, "slow") : tell("live", "live"));
  const tellLost = () => tell("no answer: this page may be old", "lost");

  const isSelecting = () => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && main.contains(selection.anchorNode);
  };

  const callbacks = {
    // Keeps what the reader opened or typed.
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
    beforeNodeMorphed: (node) => !(node.nodeType === 1 && node.hasAttribute("data-keep")),
  };

  const refresh = async () => {
    if (fetching || document.hidden || isSelecting() || main.hasAttribute("data-still")) return;
    fetching = true;
    stale = false;
    const begun = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      const page = new DOMParser().parseFromString(text, "text/html");
      const fresh = page.getElementById("main");
      if (!fresh) throw new Error(`status ${answer.status}`);
      if (!isSelecting()) {
        Idiomorph.morph(main, fresh, { ignoreActiveValue: true, callbacks });
        document.title = page.title;
        shown = fresh.dataset.revision;
      }
      tellGood();
    } catch {
      tellLost();
    }
    // The longer a page takes, the less often it is fetched.
    pauseMs = Math.max(LEAST_PAUSE_MS, 10 * (performance.now() - begun));
    fetchedAt = Date.now();
    fetching = false;
  };

  const look = () => {
    const waited = Date.now() - fetchedAt;
    if (stale ? waited >= pauseMs : waited >= AGES_MS) refresh();
  };

  const listen = () => {
    const events = new EventSource("/events");
    events.addEventListener("revision", (event) => {
      refused = false;
      if (live.dataset.state !== "live") tellGood();
      if (event.data !== shown) stale = true;
      look();
    });
    events.onerror = () => {
      // A browser tries again by itself only while there is no answer at all.
      if (events.readyState !== EventSource.CLOSED) {
        tellLost();
        return;
      }
      refused = true;
      tellGood();
      refresh(); // tells whether the worker answers at all
      setTimeout(listen, AGES_MS);
    };
  };
  listen();
  setInterval(look, 1000);
  document.addEventListener("visibilitychange", look);

  // Updates the page while the reader types a search.
  let typing = 0;
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form || !form.hasAttribute("data-live")) return;
    clearTimeout(typing);
    typing = setTimeout(() => {
      const asked = new URLSearchParams(new FormData(form));
      history.replaceState(null, "", `${location.pathname}?${asked}`);
      refresh();
    }, 250);
  });
})();
