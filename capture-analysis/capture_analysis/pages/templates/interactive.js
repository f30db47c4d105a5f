"use strict";
// Draws the page's plots from the packed columns (packed_columns.py): of each trace what the
// visible range can show, and again whenever that changes. uPlot has axes, scales and the mouse.
(() => {
  const SMALL = 2000; // a trace with no more points in sight is drawn whole
  const MARKERS = 1200; // each is an element of the page, unlike a line's points
  const FEW = 100; // points up to which each is drawn large and hollow
  const CELL = 3; // px: of the points in a square of this size one is drawn
  const MARGIN = 0.03; // around all points, as a share of their range
  const FINEST = 1e-12; // of its ends, is the least range of an axis: a ns in 1000 s
  const NEAR = 25; // px: a point within this distance of the mouse says its numbers
  const OVER_TIME = "time, s"; // the label of x of plots that share a time axis

  const bytesOf = async (id) => {
    const text = document.getElementById(id).textContent;
    const packed = await (await fetch("data:application/gzip;base64," + text)).blob();
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  };

  const unpacked = (buffer, [start, count, divisor]) => {
    if (divisor === 0) return new Float64Array(buffer.slice(start, start + 8 * count));
    const bytes = new Uint8Array(buffer, start);
    const values = new Float64Array(count);
    for (let n = 0, at = 0, whole = 0; n < count; n++) {
      let number = 0;
      let weight = 1;
      for (; bytes[at] >= 128; weight *= 128) number += (bytes[at++] - 128) * weight;
      number += bytes[at++] * weight;
      whole += number % 2 ? -(number + 1) / 2 : number / 2;
      values[n] = whole / divisor;
    }
    return values;
  };

  // The first index from which on x is at least, or with `above` greater than, a value.
  const search = (x, value, above) => {
    let low = 0;
    for (let high = x.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (x[middle] < value || (above && x[middle] === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // An axis in sight: its range, and the pixel of a value.
  const sight = ({log}, [low, high], pixels) => {
    const of = log ? Math.log10 : (value) => value;
    const scale = pixels / (of(high) - of(low));
    return {low, high, pixels, pixel: (value) => Math.floor((of(value) - of(low)) * scale)};
  };

  // Of lines, each column of pixels keeps its first, lowest, highest and last point.
  const thinLine = ({x, y}, from, to, across) => {
    const kept = [];
    for (let n = from; n < to; ) {
      const column = across.pixel(x[n]);
      let [lowest, highest, last] = [n, n, n];
      for (let m = n + 1; m < to && across.pixel(x[m]) === column; m++) {
        if (y[m] < y[lowest]) lowest = m;
        if (y[m] > y[highest]) highest = m;
        last = m;
      }
      const few = [n, lowest, highest, last].sort((a, b) => a - b);
      kept.push(...few.filter((m, at) => m !== few[at - 1]));
      n = last + 1;
    }
    return {x: kept.map((n) => x[n]), y: kept.map((n) => y[n])};
  };

  // Spans in one column of pixels become one; a null ends each.
  const thinSpans = ({x, y, top}, from, to, across) => {
    const [xs, ys] = [[], []];
    const whole = to - from <= SMALL;
    for (let n = from; n < to; ) {
      let [low, high, next] = [y[n], top[n], n + 1];
      const column = across.pixel(x[n]);
      for (; !whole && next < to && across.pixel(x[next]) === column; next++) {
        low = Math.min(low, y[next]);
        high = Math.max(high, top[next]);
      }
      xs.push(x[n], x[n], null);
      ys.push(low, high, null);
      n = next;
    }
    return {x: xs, y: ys};
  };

  // Of points, one in each small square, no matter which; larger squares until they are few.
  const thinPoints = ({x, y}, from, to, across, up) => {
    let kept = [];
    for (let n = from; n < to; n++) if (y[n] >= up.low && y[n] <= up.high) kept.push(n);
    const mixed = (n) => Math.imul(n, 0x9e3779b1) >>> 0; // the first of each would form a pattern
    for (let cell = CELL; kept.length > MARKERS; cell *= 1.4) {
      const rows = Math.ceil((up.pixels + 1) / cell);
      const grid = new Int32Array(Math.ceil((across.pixels + 1) / cell) * rows).fill(-1);
      for (const n of kept) {
        const at = Math.floor(across.pixel(x[n]) / cell) * rows + Math.floor(up.pixel(y[n]) / cell);
        if (grid[at] < 0 || mixed(n) < mixed(grid[at])) grid[at] = n;
      }
      kept = Array.from(grid.filter((n) => n >= 0));
    }
    return {x: kept.map((n) => x[n]), y: kept.map((n) => y[n])};
  };

  const visible = (trace, across, up) => {
    const {x, y, style} = trace;
    if (style === "bars") return {x, y};
    let from = search(x, across.low, false);
    let to = search(x, across.high, true);
    if (style === "spans") return thinSpans(trace, from, to, across);
    if (["points", "crosses", "letters"].includes(style)) {
      const points = thinPoints(trace, from, to, across, up);
      return style === "letters" ? {...points, text: points.x.map(() => trace.letter)} : points;
    }
    from = Math.max(from - 1, 0); // lines come from and lead to points out of sight
    to = Math.min(to + 1, x.length);
    if (to - from <= SMALL) return {x: x.slice(from, to), y: y.slice(from, to)};
    return thinLine(trace, from, to, across);
  };

  // Tell whether ticks fit between two ends. uPlot adds a step to a tick until it passes the end:
  // it never does where the step is less than the tick's last digit.
  const apart = ([low, high]) => high - low > FINEST * Math.max(Math.abs(low), Math.abs(high));

  // From the least to the greatest of some columns, with a margin.
  const extent = (columns, {log}) => {
    let [low, high] = [Infinity, -Infinity];
    for (const values of columns)
      for (const value of values)
        if (Number.isFinite(value) && (!log || value > 0)) {
          if (value < low) low = value;
          if (value > high) high = value;
        }
    if (low > high) return log ? [1, 10] : [0, 1];
    const several = apart([low, high]);
    if (log) return widened([low, high], 10 ** (several ? Math.log10(high / low) * MARGIN : MARGIN));
    const margin = (several ? high - low : Math.abs(high)) * MARGIN || 1;
    return [low - margin, high + margin];
  };

  const widened = ([low, high], factor) => [low / factor, high * factor];

  const part = (trace, [low, high]) => {
    const [from, to] = [search(trace.x, low, false), search(trace.x, high, true)];
    return [trace.y.subarray(from, to), (trace.top || trace.y).subarray(from, to)];
  };

  // The ranges that show everything, and those that the plot opens on.
  const ranges = ({traces, x, y, view}) => {
    const bars = traces.some((trace) => trace.style === "bars");
    const [left, right] = extent(traces.map((t) => t.x), x);
    const heights = [...traces.flatMap((t) => [t.y, t.top || []]), bars ? [0] : []];
    const whole = {x: bars || x.names.length ? [left - 0.5, right + 0.5] : [left, right], y: extent(heights, y)};
    if (!view) return [whole, whole];
    const spans = traces.filter((t) => t.style === "spans");
    const shown = (spans.length ? spans : traces).flatMap((t) => part(t, view));
    return [whole, {x: view, y: extent(shown, y)}];
  };

  // A colour of the page's style, which has another paper in the dark.
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ink = (colour) => (colour === "#000000" ? style("--ink") : colour);

  // How each kind of trace is drawn: a path, from points in the canvas' pixels.
  const PATHS = {
    line: (path, at) => at.forEach(([x, y]) => path.lineTo(x, y)),
    steps: (path, at) =>
      at.forEach(([x, y], n) => {
        if (n) path.lineTo(x, at[n - 1][1]);
        path.lineTo(x, y);
      }),
    spans: (path, at) => {
      for (let n = 0; n + 1 < at.length; n += 3) {
        path.moveTo(...at[n]);
        path.lineTo(...at[n + 1]);
      }
    },
    points: (path, at, dot) => at.forEach(([x, y]) => path.rect(x - dot, y - dot, 2 * dot, 2 * dot)),
    crosses: (path, at, dot) =>
      at.forEach(([x, y]) => {
        for (const slope of [1, -1]) {
          path.moveTo(x - 2 * dot, y - 2 * dot * slope);
          path.lineTo(x + 2 * dot, y + 2 * dot * slope);
        }
      }),
  };
  PATHS.dashed = PATHS.marked = PATHS.line;

  const paint = (chart, trace, points) => {
    const {ctx} = chart;
    const place = (value, axis) => (value === null ? null : chart.valToPos(value, axis, true));
    const at = Array.from(points.x, (x, n) => [place(x, "x"), place(points.y[n], "y")]);
    ctx.strokeStyle = ctx.fillStyle = ink(trace.colour);
    ctx.lineWidth = trace.width * devicePixelRatio;
    ctx.setLineDash(trace.style === "dashed" ? [6 * devicePixelRatio, 4 * devicePixelRatio] : []);
    const path = new Path2D();
    const few = trace.style === "points" && at.length <= FEW;
    const dot = (few ? 5 : 2) * devicePixelRatio;
    if (trace.style === "letters") {
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      for (const [x, y] of at) ctx.fillText(trace.letter, x, y - dot);
    } else if (trace.style === "bars") {
      const [zero, width] = [place(0, "y"), place(trace.wide, "x") - place(0, "x")];
      for (const [x, y] of at) path.rect(x + (trace.place - 0.5) * width, y, width, zero - y);
      ctx.fill(path);
    } else {
      PATHS[trace.style](path, at, dot);
      if (trace.style === "points" && !few) ctx.fill(path);
      else ctx.stroke(path);
      if (trace.style !== "marked") return;
      const marks = new Path2D();
      PATHS.points(marks, at, dot);
      ctx.fill(marks);
    }
  };

  // A number with every digit that its column has; six where a column is not of decimals.
  const exact = (value, digits) =>
    digits === null
      ? Number(value.toPrecision(6)).toString()
      : value.toLocaleString("en", {maximumFractionDigits: digits});

  const tick = (value) => {
    if (value === null) return "";
    const far = value && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e9);
    return far ? value.toExponential().replace("e+", "e") : exact(value, 9);
  };

  // The powers of ten among the marks of a logarithmic axis; if there is none, all round marks.
  const decades = (splits) => {
    const lead = (value) => Number((value / 10 ** Math.floor(Math.log10(value))).toPrecision(9));
    const round = splits.map((value) => (Number.isInteger(lead(value)) ? value : null));
    const powers = round.map((value) => (value !== null && lead(value) === 1 ? value : null));
    return powers.some((value) => value !== null) ? powers : round;
  };

  // Names at 0, 1, 2 and so on, aslant where they do not fit side by side.
  const NAME_HEIGHT = 16; // px
  const NAME_SLANT = 35; // degrees
  const widthOf = (names) => 7 * Math.max(...names.map((name) => name.length));
  const named = (names) => {
    const aslant = (chart) => widthOf(names) * names.length > 0.9 * chart.width;
    const rise = Math.sin((NAME_SLANT * Math.PI) / 180);
    return {
      splits: (chart, n, low, high) => names.map((_, at) => at).filter((at) => low <= at && at <= high),
      values: (chart, splits) => splits.map((at) => names[at]),
      rotate: (chart) => (aslant(chart) ? -NAME_SLANT : 0),
      size: (chart) => (aslant(chart) ? NAME_HEIGHT + rise * widthOf(names) : 30),
    };
  };

  // Ticks at the values of an axis.
  const ticked = (ticks) => ({
    splits: (chart, n, low, high) => ticks.filter((value) => low <= value && value <= high),
    values: (chart, splits) => splits.map(tick),
    filter: (chart, splits) => splits, // uPlot's own leaves powers of ten
    space: 0,
  });

  const axis = (name, {label, log, names, ticks}) => ({
    scale: name,
    label,
    labelSize: 20,
    labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: () => style("--soft"),
    grid: {stroke: () => style("--line"), width: 1},
    ticks: {stroke: () => style("--line"), width: 1, size: 4},
    values: (chart, splits) => (log ? decades(splits) : splits).map(tick),
    ...(name === "x"
      ? {size: 30, space: log ? 30 : 90, ...(names?.length ? named(names) : ticks?.length ? ticked(ticks) : {})}
      : {size: (chart, values) => 14 + 7 * Math.max(2, ...(values || []).map((v) => v.length))}),
  });

  // The place of a point among all of its trace: in sight are not all of them.
  const placeOf = ({trace, x, y}) => trace.x.findIndex((value, n) => value === x && trace.y[n] === y);

  const button = (text, title, click) => {
    const made = document.createElement("button");
    Object.assign(made, {textContent: text, title, type: "button", onclick: click});
    return made;
  };

  class Plot {
    constructor(id, described) {
      Object.assign(this, described);
      this.element = document.getElementById(id);
      this.hidden = new Set();
      this.entries = new Map();
      [this.whole, this.ranges] = ranges(described);
      const width = this.element.clientWidth;
      this.chart = new uPlot(this.options(width), [[0, 1], [null, null]], this.element);
      this.element.append(this.tools(), this.legend());
      this.element.tabIndex = 0;
      this.element.addEventListener("keydown", (event) => this.key(event));
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.chart.over.append(this.tip);
      this.chart.over.addEventListener("click", () => this.open());
      new ResizeObserver(() => this.resize()).observe(this.element);
      this.element.plot = this;
      this.element.classList.add("drawn");
    }

    options(width) {
      const scale = (name) => {
        const [min, max] = this.ranges[name];
        const range = (chart, low, high) => [low, high]; // uPlot's own rounds a logarithmic one
        return {auto: false, time: false, distr: this[name].log ? 3 : 1, min, max, range};
      };
      return {
        width,
        height: this.height(),
        scales: {x: scale("x"), y: scale("y")},
        series: [{}, {}],
        axes: [axis("x", this.x), axis("y", this.y)],
        legend: {show: false},
        cursor: {
          points: {show: false},
          drag: {x: true, y: true, uni: 20, setScale: false},
          bind: {
            dblclick: () => () => this.everything(),
            mousedown: (chart, target, handler) => (event) =>
              event.shiftKey ? this.grab(event) : handler(event),
          },
        },
        hooks: {
          draw: [() => this.paint()],
          setSelect: [() => this.selected()],
          setCursor: [() => this.point()],
        },
      };
    }

    height() {
      return innerWidth < 640 ? 300 : 360;
    }

    // What is drawn of each trace now.
    get shown() {
      const {width, height} = this.chart.over.getBoundingClientRect();
      const across = sight(this.x, this.ranges.x, width || 600);
      const up = sight(this.y, this.ranges.y, height || 300);
      return this.traces.map((trace) => visible(trace, across, up));
    }

    paint() {
      const {ctx, bbox} = this.chart;
      this.drawn = this.shown;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      this.traces.forEach((trace, n) => this.hidden.has(n) || paint(this.chart, trace, this.drawn[n]));
      ctx.restore();
    }

    show(wanted, told = true) {
      const fit = Object.entries(wanted).filter(([, range]) => apart(range));
      this.ranges = {...this.ranges, ...Object.fromEntries(fit)};
      this.chart.batch(() => {
        for (const name of ["x", "y"]) {
          const [min, max] = this.ranges[name];
          this.chart.setScale(name, {min, max});
        }
      });
      if (!told) return;
      const numbers = [this.ranges.x, this.ranges.y].flat().map((value) => Number(value.toPrecision(12)));
      history.replaceState(null, "", `#${this.element.id}:${numbers.join(",")}`);
      lead(this);
    }

    everything() {
      this.show(this.whole);
    }

    selected() {
      const {left, top, width, height} = this.chart.select;
      if (width < 3 || height < 3) return;
      const value = (pixel, name) => this.chart.posToVal(pixel, name);
      this.chart.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
      this.show({
        x: [value(left, "x"), value(left + width, "x")],
        y: [value(top + height, "y"), value(top, "y")],
      });
    }

    // Show shares of what is seen: from left to right, from bottom to top.
    window(across, up) {
      const {width, height} = this.chart.over.getBoundingClientRect();
      this.show({
        x: across.map((share) => this.chart.posToVal(share * width, "x")),
        y: up.map((share) => this.chart.posToVal((1 - share) * height, "y")),
      });
    }

    grab(event) {
      const over = this.chart.over.getBoundingClientRect();
      let [x, y] = [event.clientX, event.clientY];
      const move = (now) => {
        const [right, down] = [(x - now.clientX) / over.width, (now.clientY - y) / over.height];
        this.window([right, 1 + right], [down, 1 + down]);
        [x, y] = [now.clientX, now.clientY];
      };
      document.addEventListener("mousemove", move);
      document.addEventListener("mouseup", () => document.removeEventListener("mousemove", move), {once: true});
    }

    // A click opens what its point links to; a drag has selected something instead.
    open() {
      if (!this.link || this.chart.select.width) return;
      const anchor = Object.assign(document.createElement("a"), {href: this.link});
      this.element.append(anchor);  // a page may open its links otherwise
      anchor.click();
      anchor.remove();
    }

    key(event) {
      const {code, act} = KEYS[event.key] || {};
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act(this, code);
    }

    // The point nearest to the mouse, with every digit.
    point() {
      const {left, top} = this.chart.cursor;
      let best = {away: NEAR};
      this.drawn?.forEach(({x, y}, n) => {
        if (left < 0 || this.hidden.has(n)) return;
        for (let at = 0; at < x.length; at++) {
          if (x[at] === null) continue;
          const [right, down] = [this.chart.valToPos(x[at], "x"), this.chart.valToPos(y[at], "y")];
          const away = Math.hypot(right - left, down - top);
          if (away < best.away) best = {away, right, down, trace: this.traces[n], x: x[at], y: y[at]};
        }
      });
      this.link = best.trace?.links[placeOf(best)];
      this.chart.over.style.cursor = this.link ? "pointer" : "";
      this.tip.hidden = !best.trace;
      if (!best.trace) return;
      const {digits, name} = best.trace;
      const place = this.x.names[best.x] ?? exact(best.x, digits[0]);
      this.tip.textContent = `${name}\n${place}\n${exact(best.y, digits[1])}`;
      const space = this.chart.over.clientWidth;
      const turned = best.right > space / 2;
      this.tip.style.left = turned ? "" : `${best.right + 10}px`;
      this.tip.style.right = turned ? `${space - best.right + 10}px` : "";
      this.tip.style.top = `${Math.max(best.down - 20, 0)}px`;
    }

    tools() {
      const bar = document.createElement("nav");
      for (const [key, {text, title, act}] of Object.entries(KEYS))
        bar.append(button(text, `${title} (${key})`, () => act(this)));
      return bar;
    }

    image() {
      const link = document.createElement("a");
      Object.assign(link, {download: `${this.element.id}.png`, href: this.chart.ctx.canvas.toDataURL()});
      link.click();
    }

    // An entry for each name: traces of one name are parts of one line.
    legend() {
      const list = document.createElement("ul");
      this.traces.forEach(({name, colour, style: kind}) => {
        if (kind === "letters" || this.entries.has(name)) return; // the caption says what letters are
        const entry = button(name, "hide or show", () => this.hide(name, !entry.classList.contains("off")));
        this.entries.set(name, entry);
        entry.style.setProperty("--trace", colour === "#000000" ? "var(--ink)" : colour);
        entry.className = kind;
        list.append(document.createElement("li"));
        list.lastChild.append(entry);
      });
      return list;
    }

    hide(name, off) {
      this.entries.get(name).classList.toggle("off", off);
      this.traces.forEach((trace, n) => trace.name === name && this.hidden[off ? "add" : "delete"](n));
      this.chart.redraw(false);
    }

    // Hide the traces of all flows but one; "" shows all.
    only(flow) {
      const others = Array.from(flows.options, ({value}) => value).filter((each) => each && each !== flow);
      for (const name of this.entries.keys()) this.hide(name, !!flow && others.some((each) => isOf(each, name)));
    }

    resize() {
      const [width, height] = [this.element.clientWidth, this.height()];
      if (width && (width !== this.chart.width || height !== this.chart.height)) this.chart.setSize({width, height});
    }
  }

  const KEYS = {
    "+": {text: "+", title: "zoom in", act: (plot) => plot.window([0.25, 0.75], [0.25, 0.75])},
    "-": {text: "\u2212", title: "zoom out", act: (plot) => plot.window([-0.5, 1.5], [-0.5, 1.5])},
    ArrowLeft: {text: "\u2190", title: "to the left", act: (plot) => plot.window([-0.25, 0.75], [0, 1])},
    ArrowRight: {text: "\u2192", title: "to the right", act: (plot) => plot.window([0.25, 1.25], [0, 1])},
    Home: {text: "all", title: "everything", act: (plot) => plot.everything()},
    s: {text: "png", title: "save as an image", act: (plot) => plot.image()},
  };

  // With the box checked all plots over time show the stretch that one is zoomed to.
  const drawn = [];
  const together = document.getElementById("together");

  const lead = (first) => {
    if (!together?.checked || first.x.label !== OVER_TIME) return;
    for (const plot of drawn)
      if (plot !== first && plot.x.label === OVER_TIME) plot.show({x: [...first.ranges.x]}, false);
  };

  together?.addEventListener("change", () => {
    const first = drawn.find((plot) => plot.x.label === OVER_TIME);
    if (first) lead(first);
  });

  // The list of flows shows one flow in all plots. A flow's traces begin with its name.
  const flows = document.getElementById("flow");
  const isOf = (flow, name) => name.startsWith(flow) && ["", ":", "'"].includes(name.charAt(flow.length));
  flows?.addEventListener("change", () => drawn.forEach((plot) => plot.only(flows.value)));

  // On paper, and when the page turns dark or light, the colours change.
  const redraw = () => drawn.forEach((plot) => plot.chart.redraw(false));
  const print = (on) => {
    document.documentElement.classList.toggle("paper", on);
    redraw();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // The plot that is least far out of sight; of those in sight the first.
  const nearest = (ids) => {
    const away = (id) => {
      const {top, bottom} = document.getElementById(id).getBoundingClientRect();
      return Math.max(top - innerHeight, -bottom, 0);
    };
    return ids.reduce((best, id) => (away(id) < away(best) ? id : best));
  };

  // The plot and ranges that the page's address names: #ID:LEFT,RIGHT,BOTTOM,TOP.
  const addressed = () => {
    const [id, numbers] = decodeURIComponent(location.hash.slice(1)).split(":");
    const values = (numbers || "").split(",").map(Number);
    if (values.length !== 4 || !values.every(Number.isFinite)) return [id, null];
    const [left, right, bottom, top] = values;
    return [id, left < right && bottom < top ? {x: [left, right], y: [bottom, top]} : null];
  };

  const start = async () => {
    const buffer = await bytesOf("columns");
    const {columns, plots} = JSON.parse(document.getElementById("plots").textContent);
    const values = columns.map((column) => unpacked(buffer, column));
    const [id, wanted] = addressed();
    if (wanted) document.getElementById(id)?.scrollIntoView();
    const pending = new Map(Object.entries(plots));
    while (pending.size) {
      const next = nearest([...pending.keys()]);
      const described = pending.get(next);
      pending.delete(next);
      for (const trace of described.traces)
        for (const name of ["x", "y", "top"]) if (name in trace) trace[name] = values[trace[name]];
      const plot = new Plot(next, described);
      drawn.push(plot);
      if (flows?.value) plot.only(flows.value); // chosen before this plot was drawn
      if (next === id && wanted) plot.show(wanted);
      await new Promise((done) => setTimeout(done)); // the page stays responsive between plots
    }
    document.body.dataset.plots = "drawn";
  };

  start().catch((error) => {
    const problem = document.getElementById("problem");
    problem.hidden = false;
    problem.textContent = `The plots need a browser of 2023 or later (${error}).`;
    console.error(error);
  });
})();
