// The first tab: strokes on a canvas, and what the chip makes of them.

const APART = 0.006; // of the canvas: nearer points add nothing
const PEN = 0.075;

function softmax(values) {
  const most = Math.max(...values);
  const powers = values.map((v) => Math.exp(v - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / sum);
}

function fillDigits(panel, about, facts) {
  const pad = $(".pad", panel);
  const strokes = [];
  const rows = Array.from({ length: 10 }, (_, digit) => {
    const bar = make("span", { className: "fill" });
    const words = make("span", { className: "percent" }, "");
    return { bar, words, row: make("div", { className: "bar-row" }, make("b", {}, String(digit)),
      make("span", { className: "track" }, bar), words) };
  });
  $(".bars", panel).append(...rows.map(({ row }) => row));

  const asker = new Asker(
    async () => strokes.length ? ask("digits/draw", JSON.stringify({ strokes })) : null,
    (answer) => {
      if (!strokes.length) return; // cleared in the meantime
      facts.show(answer);
      drawGrey($(".seen", panel), answer.seen, 0, 1);
      verdict(softmax(answer.outputs[0].map(Number)));
    },
  );

  function verdict(parts) {
    const best = parts ? parts.indexOf(Math.max(...parts)) : -1; // none if one of them is not a number
    $(".digit", panel).textContent = best >= 0 ? String(best) : parts ? "?" : "–";
    $(".sure", panel).textContent = best >= 0 ? `${(100 * parts[best]).toFixed(0)} % sure` : parts ? "an output is not a finite number" : "\u00a0";
    rows.forEach(({ bar, words, row }, i) => {
      bar.style.width = best >= 0 ? `${100 * parts[i]}%` : "0";
      words.textContent = best >= 0 ? `${(100 * parts[i]).toFixed(1)} %` : "";
      row.classList.toggle("best", i === best);
    });
  }

  function redraw() {
    const pen = pad.getContext("2d");
    const side = pad.width;
    pen.clearRect(0, 0, side, side);
    Object.assign(pen, { lineWidth: PEN * side, lineCap: "round", lineJoin: "round",
      strokeStyle: getComputedStyle(pad).color });
    for (const stroke of strokes) {
      pen.beginPath();
      pen.moveTo(stroke[0][0] * side, stroke[0][1] * side);
      for (const [x, y] of stroke.length > 1 ? stroke : [stroke[0]]) pen.lineTo(x * side, y * side);
      pen.stroke();
    }
    $(".hint", panel).hidden = strokes.length > 0;
  }

  function changed() {
    redraw();
    if (strokes.length) return asker.ask();
    verdict(null);
    drawGrey($(".seen", panel), new Array(784).fill(0), 0, 1);
  }

  onStroke(pad, (points, begins) => {
    if (begins) strokes.push([]);
    const stroke = strokes.at(-1);
    for (const point of points) {
      const last = stroke.at(-1);
      if (!last || Math.hypot(point[0] - last[0], point[1] - last[1]) >= APART) stroke.push(point);
    }
    changed();
  });
  const clear = () => { strokes.length = 0; changed(); };
  const undo = () => { strokes.pop(); changed(); };
  $(".clear", panel).onclick = clear;
  $(".undo", panel).onclick = undo;
  pad.onkeydown = (event) => {
    if (event.key === "Escape" || event.key === "Delete") clear();
    if (event.key === "Backspace" || event.key === "z" && (event.ctrlKey || event.metaKey)) undo();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  changed();
}

// Calls back with the points of strokes, from 0 to 1 across and down, and whether a stroke begins with them.
function onStroke(canvas, draw) {
  const points = (event) => {
    const box = canvas.getBoundingClientRect();
    const all = event.getCoalescedEvents?.() ?? [];
    return (all.length ? all : [event]).map(({ clientX, clientY }) =>
      [(clientX - box.x) / box.width, (clientY - box.y) / box.height].map((v) => Number(Math.min(1, Math.max(0, v)).toFixed(4))));
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary) return; // a second finger draws nothing
    canvas.setPointerCapture(event.pointerId);
    draw(points(event), true);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) draw(points(event), false);
  });
}

// Values as pixels from black to white.
function drawGrey(canvas, values, low, high) {
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(canvas.width, canvas.height);
  const scale = 255 / (high - low || 1);
  values.forEach((v, i) => pixels.data.set([...Array(3).fill((v - low) * scale), 255], 4 * i));
  pen.putImageData(pixels, 0, 0);
}
