// Outputs of the second tab: an object with `element` and `show(values)`.

const HISTORY = 240; // answers that are kept
const LINES = 8; // of a history at most

const VIEWS = { numbers: BarsOutput, picture: PictureOutput, curve: CurveOutput };

function outputCard(control) {
  const output = new VIEWS[control.kind](control);
  output.element = make("div", { className: "card output" },
    make("h2", {}, control.name, make("span", { className: "note" }, ` ${control.dtype}[${control.shape.join(", ")}]`)),
    ...output.parts);
  return output;
}

function BarsOutput(control) {
  const { count } = control;
  const soft = make("input", { type: "checkbox" });
  const rows = Array.from({ length: count }, (_, i) => {
    const fill = make("span", { className: "fill" });
    const words = make("span", { className: "percent" });
    const name = count > 1 ? index(control.shape, i).replace(/^\[0, /, "[") : control.name;
    return { fill, words, row: make("div", { className: "bar-row" }, make("b", {}, name.replace(/[[\]]/g, "")),
      make("span", { className: "track" }, fill), words) };
  });
  const names = rows.map(({ row }) => row.firstChild.textContent.length);
  const history = count <= LINES ? new History(count) : null;
  if (history && count > 1) rows.forEach(({ row }, i) => { row.firstChild.style.color = `var(--line${i})`; });
  let reach = 1e-9;
  let latest = null;
  const draw = () => {
    if (!latest) return;
    const plain = latest.map(Number);
    const shown = soft.checked ? softmax(plain) : plain;
    reach = soft.checked ? 1 : Math.max(reach, ...shown.filter(Number.isFinite).map(Math.abs));
    const signed = shown.some((v) => v < 0);
    const best = count > 1 ? shown.indexOf(Math.max(...shown)) : -1;
    rows.forEach(({ fill, words, row }, i) => {
      const part = Math.min(1, Math.abs(shown[i]) / reach) * (signed ? 50 : 100);
      fill.style.width = `${part || 0}%`;
      fill.style.marginLeft = signed ? `${shown[i] < 0 ? 50 - part : 50}%` : "0";
      words.textContent = soft.checked ? `${(100 * shown[i]).toFixed(1)} %` : number(latest[i]);
      row.classList.toggle("best", i === best);
      row.classList.toggle("signed", signed);
    });
  };
  soft.onchange = () => { reach = 1e-9; draw(); };
  this.show = (values) => { latest = values; draw(); history?.add(values.map(Number)); };
  const bars = make("div", { className: count > 20 ? "bars many" : "bars" }, ...rows.map(({ row }) => row));
  bars.style.setProperty("--letters", Math.max(...names));
  this.parts = [bars,
    ...count > 1 ? [make("label", { className: "note check" }, soft, " softmax, computed in the browser")] : [],
    ...history ? [make("h3", {}, "The last answers"), history.canvas] : []];
}

function PictureOutput(control) {
  const { width, height, channels, last } = control.picture;
  const canvas = make("canvas", { className: "seen large", width, height, ariaLabel: control.name });
  const note = make("p", { className: "note" });
  canvas.style.aspectRatio = `${width} / ${height}`;
  this.parts = [canvas, note];
  this.show = (values) => {
    const plain = values.map(Number).filter(Number.isFinite);
    const low = plain.reduce((a, b) => Math.min(a, b), Infinity);
    const high = plain.reduce((a, b) => Math.max(a, b), -Infinity);
    const pen = canvas.getContext("2d");
    const pixels = pen.createImageData(width, height);
    for (let p = 0; p < width * height; p++) {
      const of = (c) => (255 * (Number(values[last ? p * channels + c : c * width * height + p]) - low)) / (high - low || 1);
      pixels.data.set([of(0), of(channels > 1 ? 1 : 0), of(channels > 1 ? 2 : 0), 255], 4 * p);
    }
    pen.putImageData(pixels, 0, 0);
    note.textContent = (plain.length ? `From black, ${number(low)}, to white, ${number(high)}.` : "No finite numbers.") + cutShort(values, control);
  };
}

const cutShort = (values, { count }) => values.length < count ? ` Only the first ${grouped(values.length)} of ${grouped(count)} numbers came.` : "";

function CurveOutput(control) {
  const canvas = make("canvas", { className: "curve", width: 640, height: 240 });
  const note = make("p", { className: "note" });
  this.parts = [canvas, note];
  this.show = (values) => {
    const plain = values.map(Number);
    const known = plain.filter(Number.isFinite);
    const low = known.reduce((a, b) => Math.min(a, b), Infinity);
    const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
    if (known.length) plotLine(canvas, plain, low, high);
    note.textContent = known.length ? `${grouped(values.length)} numbers from ${number(low)} to ${number(high)}, the largest at ${grouped(plain.indexOf(high))}.${cutShort(values, control)}` : "No finite numbers.";
  };
}

function History(count) {
  const lines = Array.from({ length: count }, () => []);
  this.canvas = make("canvas", { className: "curve history", width: 640, height: 200, ariaLabel: "the last answers" });
  this.add = (values) => {
    lines.forEach((line, i) => { line.push(values[i]); if (line.length > HISTORY) line.shift(); });
    const known = lines.flat().filter(Number.isFinite);
    const low = Math.min(...known), high = Math.max(...known);
    if (known.length) plotLines(this.canvas, lines, low, high, HISTORY, 96);
  };
}

const plotLine = (canvas, values, low, high) => plotLines(canvas, [values], low, high, values.length);

// Lines from the lowest to the highest value, with room for `length` values across; both ends are written in a margin at
// the left, if there is one.
function plotLines(canvas, lines, low, high, length, margin = 0) {
  const pen = canvas.getContext("2d");
  const { width, height } = canvas;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  const [top, bottom] = [14, height - 14];
  const x = (k) => margin + ((width - margin) * (k + 0.5)) / length;
  const y = (v) => bottom - ((bottom - top) * (v - low)) / (high - low || 1);
  pen.clearRect(0, 0, width, height);
  pen.lineWidth = 1;
  pen.strokeStyle = colour("--rule");
  for (const v of low < 0 && high > 0 ? [low, 0, high] : [low, high]) {
    pen.beginPath();
    pen.moveTo(margin, y(v));
    pen.lineTo(width, y(v));
    pen.stroke();
  }
  Object.assign(pen, { lineWidth: 2.5, lineJoin: "round" });
  lines.forEach((line, i) => {
    pen.strokeStyle = pen.fillStyle = lines.length === 1 ? colour("--accent") : colour(`--line${i}`);
    pen.beginPath();
    line.forEach((v, k) => { if (Number.isFinite(v)) pen.lineTo(x(k), y(v)); });
    pen.stroke();
    const end = line.length - 1;
    if (line.length < length && end >= 0) {
      pen.beginPath();
      pen.arc(x(end), y(line[end]), 5, 0, 7);
      pen.fill();
    }
  });
  if (!margin) return;
  Object.assign(pen, { font: "17px system-ui, sans-serif", textAlign: "right", fillStyle: colour("--soft") });
  pen.fillText(number(high), margin - 12, top + 6);
  if (high > low) pen.fillText(number(low), margin - 12, bottom + 6);
}
