"use strict";
// Draws the page's plots from the packed columns (packed_columns.py): of each trace what the
// visible range can show, and again whenever that changes.
(() => {
  const SMALL = 2000; // a trace with no more points in sight is drawn whole
  const MARKERS = 1200; // each is an element of the page, unlike a line's points
  const CELL = 3; // px: of the points in a square of this size one is drawn
  const LEGEND_ROW = 29; // px: a legend of one row
  const MARGIN = 0.03; // around all points, as a share of their range

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

  // An axis in sight: its range in the axis' own terms (logarithms on a log axis) and in pixels.
  const sight = (axis, range, pixels) => {
    const of = axis.type === "log" ? Math.log10 : (value) => value;
    const back = axis.type === "log" ? (value) => 10 ** value : (value) => value;
    const [low, high] = [Math.min(...range), Math.max(...range)];
    return {
      low: back(low),
      high: back(high),
      pixels,
      pixel: (value) => Math.floor(((of(value) - low) / (high - low)) * pixels),
    };
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

  // From the least to the greatest of some columns, as an axis' range.
  const extent = (columns, log) => {
    let [low, high] = [Infinity, -Infinity];
    for (const values of columns)
      for (const value of values)
        if (Number.isFinite(value) && (!log || value > 0)) {
          if (value < low) low = value;
          if (value > high) high = value;
        }
    if (low > high) return [0, 1];
    if (log) [low, high] = [Math.log10(low), Math.log10(high)];
    const margin = (high - low) * MARGIN || Math.abs(high) * MARGIN || 1;
    return [low - margin, high + margin];
  };

  const part = (trace, [low, high]) => {
    const [from, to] = [search(trace.x, low, false), search(trace.x, high, true)];
    return [trace.y.subarray(from, to), (trace.top || trace.y).subarray(from, to)];
  };

  // The ranges that show everything, and those that the plot opens on.
  const ranges = ({traces, layout, view}) => {
    const log = (axis) => layout[axis].type === "log";
    const whole = {
      "xaxis.range": extent(traces.map((t) => t.x), log("xaxis")),
      "yaxis.range": extent(traces.flatMap((t) => [t.y, t.top || []]), log("yaxis")),
    };
    if (!view) return [whole, whole];
    const spans = traces.filter((t) => t.style === "spans");
    const shown = (spans.length ? spans : traces).flatMap((t) => part(t, view));
    const terms = log("xaxis") ? view.map(Math.log10) : view;
    return [whole, {"xaxis.range": terms, "yaxis.range": extent(shown, log("yaxis"))}];
  };

  const draw = async (id, plot) => {
    const element = document.getElementById(id);
    const {traces, layout} = plot;
    const drawn = (at) => {
      const across = sight(layout.xaxis, at["xaxis.range"], element.clientWidth);
      const up = sight(layout.yaxis, at["yaxis.range"], element.clientHeight);
      return traces.map((trace) => visible(trace, across, up));
    };
    const bars = traces.some((trace) => trace.style === "bars");
    const [whole, first] = ranges(plot);
    if (!bars) {
      layout.xaxis.range = [...first["xaxis.range"]];
      layout.yaxis.range = [...first["yaxis.range"]];
    }
    if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false; // a finger scrolls
    const everything = {
      name: "everything",
      icon: Plotly.Icons.home,
      click: () => Plotly.relayout(element, bars ? {"xaxis.autorange": true, "yaxis.autorange": true} : whole),
    };
    const data = drawn(first).map((points, n) => ({...traces[n].look, ...points}));
    await Plotly.newPlot(element, data, layout, {
      responsive: true,
      displaylogo: false,
      doubleClick: false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", everything]],
    });
    const legend = element.querySelector(".legend");
    const more = legend ? legend.getBoundingClientRect().height - LEGEND_ROW : 0;
    if (more > 0) { // a long legend makes the plot longer, not lower
      element.style.height = `${element.clientHeight + more}px`;
      await Plotly.Plots.resize(element);
    }
    element.on("plotly_doubleclick", everything.click);
    if (bars) return;
    element.on("plotly_relayout", () => {
      const now = {"xaxis.range": element.layout.xaxis.range, "yaxis.range": element.layout.yaxis.range};
      const points = drawn(now);
      const of = (name) => points.map((each) => each[name]);
      Plotly.restyle(element, {x: of("x"), y: of("y"), text: of("text")});
    });
    if (layout.xaxis.title.text === "time, s") follow(element);
  };

  // Plots over time; with the box checked all show the stretch that one is zoomed to.
  const overTime = [];

  const lead = (element) => {
    const range = element.layout.xaxis.range;
    const differs = (other) => other.layout.xaxis.range.some((edge, n) => edge !== range[n]);
    if (document.getElementById("together")?.checked)
      for (const other of overTime.filter(differs)) Plotly.relayout(other, {"xaxis.range": [...range]});
  };

  const follow = (element) => {
    overTime.push(element);
    element.on("plotly_relayout", () => lead(element));
    if (overTime.length === 1)
      document.getElementById("together")?.addEventListener("change", () => lead(overTime[0]));
  };

  // The plot that is least far out of sight; of those in sight the first.
  const nearest = (ids) => {
    const away = (id) => {
      const {top, bottom} = document.getElementById(id).getBoundingClientRect();
      return Math.max(top - innerHeight, -bottom, 0);
    };
    return ids.reduce((best, id) => (away(id) < away(best) ? id : best));
  };

  const start = async () => {
    const [script, buffer] = await Promise.all([bytesOf("plotly"), bytesOf("columns")]);
    const element = document.createElement("script");
    element.textContent = new TextDecoder().decode(script);
    document.head.append(element);
    const {columns, plots} = JSON.parse(document.getElementById("plots").textContent);
    const values = columns.map((column) => unpacked(buffer, column));
    const pending = new Map(Object.entries(plots));
    while (pending.size) {
      const id = nearest([...pending.keys()]);
      const plot = pending.get(id);
      pending.delete(id);
      for (const trace of plot.traces)
        for (const name of ["x", "y", "top"]) if (name in trace) trace[name] = values[trace[name]];
      await draw(id, plot);
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
