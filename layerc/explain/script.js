// Point at a line: what it became lights up in the other panes. Click holds it. Without this, all is shown.
(() => {
  "use strict";
  document.documentElement.classList.add("js");
  const set = (line, key) => new Set((line.dataset[key] || "").split(" ").filter(Boolean));
  const meet = (a, b) => [...a].some((x) => b.has(x));
  const paneOf = (line) => line.closest(".pane");

  // The lines that belong to a line: by gradient lines between gradient and C where both know them, else by
  // forward lines.
  function partners(line) {
    const own = paneOf(line), f = set(line, "f"), g = set(line, "g");
    const source = own.classList.contains("forward");
    const lines = [...line.closest(".panes").querySelectorAll(".l[data-f], .l[data-g]")];
    return lines.filter((other) => {
      if (paneOf(other) === own) return !source && meet(f, set(other, "f"));
      const theirs = set(other, "g");
      return g.size && theirs.size ? meet(g, theirs) : meet(f, set(other, "f"));
    });
  }

  let held = null;
  function clear(section) {
    section.classList.remove("held");
    section.querySelectorAll(".on, .at, .lit").forEach((e) => e.classList.remove("on", "at", "lit"));
  }
  function light(line) {
    const section = line.closest("section");
    clear(section);
    line.classList.add("at");
    const hue = getComputedStyle(line).getPropertyValue("--hue");
    for (const other of partners(line)) {
      other.classList.add("on");
      if (hue && other.classList.contains("many")) other.style.setProperty("--hue", hue);
    }
    section.querySelectorAll(".pane.native").forEach((pane) => {
      const buttons = pane.querySelectorAll(".tabs button");
      pane.querySelectorAll(".kernel").forEach((kernel, n) =>
        buttons[n].classList.toggle("lit", !!kernel.querySelector(".on")));
    });
  }
  function show(pane, n) {
    pane.querySelectorAll(".kernel").forEach((kernel, at) => kernel.classList.toggle("shown", at === n));
    pane.querySelectorAll(".tabs button").forEach((b, at) => b.setAttribute("aria-pressed", String(at === n)));
  }
  function reveal(section, line) {
    for (const pane of section.querySelectorAll(".pane")) {
      if (pane === paneOf(line)) continue;
      let box = pane.querySelector(".kernel.shown") || pane;
      let first = box.querySelector(".on");
      if (!first && (first = pane.querySelector(".on"))) {
        box = first.closest(".kernel");
        show(pane, [...pane.querySelectorAll(".kernel")].indexOf(box));
      }
      const code = first && first.closest(".code");
      if (code) code.scrollTo({ top: first.offsetTop - code.offsetTop - code.clientHeight / 3, behavior: "smooth" });
    }
  }
  function hold(line) {
    const section = line.closest("section"), again = held === line;
    if (held) clear(held.closest("section"));
    held = again ? null : line;
    if (!held) return;
    light(line);
    section.classList.add("held");
    reveal(section, line);
  }

  const lineAt = (event) => event.target.closest && event.target.closest(".l[data-f], .pane.gradient .l[data-g]");
  document.addEventListener("mouseover", (event) => {
    const line = lineAt(event);
    if (!held && line) light(line);
  });
  document.addEventListener("mouseout", (event) => {
    const line = lineAt(event);
    if (!held && line) clear(line.closest("section"));
  });
  document.addEventListener("focusin", (event) => {
    const line = lineAt(event);
    if (!held && line) light(line);
  });
  document.addEventListener("click", (event) => {
    const line = lineAt(event);
    if (line && !String(getSelection())) hold(line);
  });
  document.addEventListener("keydown", (event) => {
    const line = lineAt(event);
    if (event.key === "Escape" && held) hold(held);
    if ((event.key === "Enter" || event.key === " ") && line) {
      event.preventDefault();
      hold(line);
    }
  });
  document.querySelectorAll(".pane.native").forEach((pane) => {
    show(pane, 0);
    pane.querySelectorAll(".tabs button").forEach((button, n) => button.addEventListener("click", () => show(pane, n)));
  });
  const asked = new URLSearchParams(location.hash.slice(1)).get("hold"); // #hold=rbf:36 opens with that line held
  if (asked) {
    const [name, number] = asked.split(":");
    const section = document.getElementById(name);
    const line = section && [...section.querySelectorAll(".pane.forward .l[data-f]")].find((l) => set(l, "f").has(number));
    if (line) {
      section.scrollIntoView({ behavior: "instant" });
      hold(line);
    }
  }
})();
