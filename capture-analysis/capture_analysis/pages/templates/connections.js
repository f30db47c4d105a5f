"use strict";
// The table of all connections: sorts, filters, and has elements only for the rows in sight.
(async () => {
  const ROW = 28; // px, the height of a row in the page's style
  const MORE = 20; // rows drawn above and below those in sight
  const SHOWN = [
    ["id", "no"],
    ["client", "client"],
    ["server", "server"],
    ["cause", "cause"],
    ["stall", "stall, s"],
    ["stall_at", "at, s"],
    ["connect", "connect, s"],
    ["first_byte", "first byte, s"],
    ["time", "time, s"],
    ["start", "start, s"],
    ["sent_again", "sent again"],
    ["payload", "payload, bytes"],
    ["end", "end"],
  ];
  const place = document.getElementById("finder");
  const text = place.querySelector("script").textContent;
  const zipped = await (await fetch("data:application/gzip;base64," + text)).blob();
  const plain = zipped.stream().pipeThrough(new DecompressionStream("gzip"));
  const columns = await new Response(plain).json();

  const count = columns.id.length;
  const value = (name, row) =>
    columns[name].all ? columns[name].all[columns[name].number[row]] : columns[name][row];
  const cell = (name, row) => {
    const found = value(name, row);
    if (name !== "client" && name !== "server")
      return found === null ? "\u2013" : typeof found === "number" ? found.toLocaleString("en") : found;
    return (found.includes(":") ? `[${found}]` : found) + ":" + value(name + "_port", row);
  };
  const searched = (row) =>
    SHOWN.map(([name]) => (columns[name].all ? cell(name, row) : "")).join(" ").toLowerCase();
  const texts = [];

  const find = place.querySelector("input");
  const said = place.querySelector(".count");
  const scroll = place.querySelector(".rows");
  const [head, body] = [place.querySelector("thead tr"), place.querySelector("tbody")];
  let [order, sorted, down, cause] = [[], "", true, ""];

  const draw = () => {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - MORE);
    const last = Math.min(order.length, first + Math.ceil(scroll.clientHeight / ROW) + 2 * MORE);
    const gap = (rows) => {
      const line = document.createElement("tr");
      line.style.height = rows * ROW + "px";
      return line;
    };
    const lines = order.slice(first, last).map((row) => {
      const line = document.createElement("tr");
      for (const [name] of SHOWN) {
        const shown = line.insertCell();
        shown.className = name + (columns[name].all ? "" : " number");
        shown.textContent = cell(name, row);
      }
      return line;
    });
    body.replaceChildren(gap(first), ...lines, gap(order.length - last));
  };

  const compare = (a, b) => {
    const [x, y] = [value(sorted, a), value(sorted, b)];
    if (x === y) return a - b;
    if (x === null || y === null) return x === null ? 1 : -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  };

  const choose = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    order = [];
    for (let row = 0; row < count; row++) {
      if (cause && value("cause", row) !== cause) continue;
      texts[row] ??= searched(row);
      if (words.every((word) => texts[row].includes(word))) order.push(row);
    }
    if (sorted) order.sort(compare);
    said.textContent = `${order.length.toLocaleString("en")} of ${count.toLocaleString("en")}`;
    scroll.scrollTop = 0;
    draw();
  };

  for (const [name, title] of SHOWN) {
    const button = document.createElement("button");
    button.textContent = title;
    const heading = document.createElement("th");
    heading.className = name + (columns[name].all ? "" : " number");
    heading.append(button);
    head.append(heading);
    button.addEventListener("click", () => {
      down = sorted === name ? !down : !columns[name].all;
      sorted = name;
      for (const each of head.children) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      choose();
    });
  }
  for (const button of place.querySelectorAll("nav button"))
    button.addEventListener("click", () => {
      cause = button.value;
      for (const each of place.querySelectorAll("nav button"))
        each.setAttribute("aria-pressed", each === button);
      choose();
    });
  find.addEventListener("input", choose);
  scroll.addEventListener("scroll", draw, {passive: true});
  new ResizeObserver(draw).observe(scroll);
  choose();
  place.dataset.drawn = "yes";
})();
