// Inputs of the second tab. Each is an object with `element`, `values` (a Float64Array in the order of the input's
// shape) and `set(values)`, and calls `changed` when people change it.

const index = (shape, i) => {
  const at = [];
  for (const size of [...shape].reverse()) {
    at.unshift(i % size);
    i = Math.floor(i / size);
  }
  return at.length ? `[${at.join(", ")}]` : "";
};

const CONTROLS = { numbers: Sliders, picture: PictureInput, curve: CurveInput };

function inputCard(control, changed) {
  const input = new CONTROLS[control.kind](control, changed);
  const buttons = { Example: () => input.set(control.example), ...input.more };
  input.element = make("div", { className: "card input" },
    make("h2", {}, control.name, make("span", { className: "note" }, ` ${control.dtype}[${control.shape.join(", ")}]`)),
    ...input.parts,
    make("div", { className: "buttons" }, ...Object.entries(buttons).map(([title, what]) =>
      make("button", { type: "button", onclick: () => { what(); changed(); } }, title)), ...input.tools ?? []),
    ...input.note ? [make("p", { className: "note" }, input.note)] : []);
  input.set(control.example);
  return input;
}

function Sliders(control, changed) {
  const { low, high, whole, shape } = control;
  const values = new Float64Array(control.example.length);
  const step = whole ? 1 : (high - low) / 500;
  const rows = control.example.map((_, i) => {
    const name = `${control.name}${shape.length && control.example.length > 1 ? index(shape, i) : ""}`;
    const slider = make("input", { type: "range", min: low, max: high, step, ariaLabel: name });
    const field = make("input", { type: "number", step: whole ? 1 : "any", ariaLabel: name });
    const put = (v) => {
      values[i] = whole ? Math.round(v) : v;
      slider.value = values[i];
      field.value = Number(values[i].toPrecision(4));
    };
    slider.oninput = () => { put(slider.valueAsNumber); changed(); };
    field.onchange = () => { if (!Number.isNaN(field.valueAsNumber)) { put(field.valueAsNumber); changed(); } };
    return { put, row: make("label", { className: "slider" }, make("code", {}, name), slider, field) };
  });
  this.values = values;
  this.set = (given) => rows.forEach(({ put }, i) => put(given[i]));
  const all = make("div", { className: "sliders" }, ...rows.map(({ row }) => row));
  all.style.setProperty("--letters", Math.max(...rows.map(({ row }) => row.firstChild.textContent.length)));
  this.parts = [all];
  this.more = { Random: () => this.set(values.map(() => low + Math.random() * (high - low))) };
}

function CurveInput(control, changed) {
  const { low, high } = control;
  const values = new Float64Array(control.example.length);
  const canvas = make("canvas", { className: "curve", width: 640, height: 240, ariaLabel: `${control.name}, a curve to draw on` });
  const redraw = () => plotLine(canvas, values, low, high);
  let last = null;
  onStroke(canvas, (points, begins) => {
    if (begins) last = null;
    for (const [x, y] of points) {
      const to = Math.min(values.length - 1, Math.floor(x * values.length));
      const v = high - y * (high - low);
      const from = last ?? { at: to, v };
      const steps = Math.max(1, Math.abs(to - from.at));
      for (let k = 0; k <= steps; k++) {
        const at = from.at + Math.round(((to - from.at) * k) / steps);
        values[at] = from.v + ((v - from.v) * k) / steps;
        if (control.whole) values[at] = Math.round(values[at]);
      }
      last = { at: to, v };
    }
    redraw();
    changed();
  });
  this.values = values;
  this.set = (given) => { values.set(given); redraw(); };
  this.parts = [canvas];
  const middle = control.whole ? Math.round((low + high) / 2) : low < 0 && high > 0 ? 0 : low;
  this.more = { Flat: () => this.set(values.map(() => middle)),
    Noise: () => this.set(values.map(() => control.whole ? Math.round(low + Math.random() * (high - low)) : low + Math.random() * (high - low))) };
  this.note = `${grouped(values.length)} numbers; draw from ${number(low)} at the bottom to ${number(high)} at the top.`;
}

function PictureInput(control, changed) {
  const { low, high } = control;
  const { width, height, channels, last } = control.picture;
  const values = new Float64Array(control.example.length);
  const zoom = Math.max(1, Math.round(480 / Math.max(width, height)));
  const pad = make("canvas", { className: "pad", width: width * zoom, height: height * zoom, tabIndex: 0, ariaLabel: `${control.name}, a picture to draw on` });
  const seen = make("canvas", { className: "seen", width, height, ariaLabel: `${control.name} as the chip gets it` });
  const colour = make("input", { type: "color", value: "#ffffff", ariaLabel: "colour of the pen" });
  const pen = pad.getContext("2d", { willReadFrequently: true });
  const small = seen.getContext("2d", { willReadFrequently: true });
  const place = (pixel, c) => last ? pixel * channels + c : c * width * height + pixel;

  const take = () => { // what is on the pad, in the input's own size
    small.imageSmoothingQuality = "high";
    small.drawImage(pad, 0, 0, width, height);
    const shown = small.getImageData(0, 0, width, height);
    for (let p = 0; p < width * height; p++) {
      const rgb = shown.data.subarray(4 * p, 4 * p + 3);
      const grey = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
      for (let c = 0; c < channels; c++) {
        const v = low + ((channels === 1 ? grey : rgb[c]) * (high - low)) / 255;
        values[place(p, c)] = control.whole ? Math.round(v) : v;
      }
      if (channels === 1) rgb.fill(grey);
    }
    small.putImageData(shown, 0, 0);
  };
  let fresh = true; // nothing but the example: the first stroke begins an own picture
  const blank = () => { fresh = false; pen.fillStyle = "#000"; pen.fillRect(0, 0, pad.width, pad.height); take(); };
  const load = async (file) => {
    try {
      const image = await createImageBitmap(file);
      const scale = Math.max(pad.width / image.width, pad.height / image.height);
      const [w, h] = [image.width * scale, image.height * scale];
      fresh = false;
      pen.imageSmoothingQuality = "high";
      pen.drawImage(image, (pad.width - w) / 2, (pad.height - h) / 2, w, h);
      settle();
    } catch {
      complain(new Trouble({ error: `the browser cannot read ${file.name} as a picture`, need: ["a PNG, JPEG, WebP or GIF file"] }), settle);
      return;
    }
    take();
    changed();
  };
  let from = null;
  onStroke(pad, (points, begins) => {
    if (fresh) blank();
    Object.assign(pen, { lineCap: "round", lineJoin: "round", strokeStyle: channels === 1 ? "#fff" : colour.value,
      lineWidth: Math.max(pad.width, pad.height) * 0.07 });
    if (begins) from = points[0];
    pen.beginPath();
    pen.moveTo(from[0] * pad.width, from[1] * pad.height);
    for (const [x, y] of points) pen.lineTo(x * pad.width, y * pad.height);
    pen.stroke();
    from = points.at(-1);
    take();
    changed();
  });
  pad.ondragover = (event) => { event.preventDefault(); pad.classList.add("over"); };
  pad.ondragleave = () => pad.classList.remove("over");
  pad.ondrop = (event) => {
    event.preventDefault();
    pad.classList.remove("over");
    if (event.dataTransfer.files[0]) load(event.dataTransfer.files[0]);
  };
  const chooser = make("input", { type: "file", accept: "image/*", hidden: true, onchange: () => { if (chooser.files[0]) load(chooser.files[0]); chooser.value = ""; } });
  this.values = values;
  this.set = (given) => { // exactly these, and on the pad as near as eight bits can show them
    const pixels = small.createImageData(width, height);
    for (let p = 0; p < width * height; p++) {
      const of = (c) => (255 * (given[place(p, c)] - low)) / (high - low || 1);
      pixels.data.set([of(0), of(channels > 1 ? 1 : 0), of(channels > 1 ? 2 : 0), 255], 4 * p);
    }
    small.putImageData(pixels, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(seen, 0, 0, pad.width, pad.height);
    pen.imageSmoothingEnabled = true;
    values.set(given);
    fresh = true;
  };
  pad.style.aspectRatio = seen.style.aspectRatio = `${width} / ${height}`;
  this.parts = [make("div", { className: "picture" }, pad, make("div", {}, seen, make("p", { className: "note" }, `${width}×${height}, as the chip gets it`)))];
  this.more = { Clear: blank };
  this.tools = [make("button", { type: "button", onclick: () => chooser.click() }, "Picture …"), chooser, ...channels > 1 ? [colour] : []];
  this.note = `Draw, or drop a picture on it. Black is ${number(low)}, white is ${number(high)}, as the example has it.`;
}
