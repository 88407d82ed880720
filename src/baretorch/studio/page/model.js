// The second tab: controls for every input of any model, and a view of every output.

const RATE = 100; // milliseconds between steps while it plays

function fillModel(panel, about, facts) {
  const outputs = about.outputs.map(outputCard);
  const asker = new Asker(
    () => {
      const all = new Float64Array(inputs.reduce((sum, input) => sum + input.values.length, 0));
      let at = 0;
      for (const input of inputs) {
        all.set(input.values, at);
        at += input.values.length;
      }
      return ask("model/run", all);
    },
    (answer) => {
      facts.show(answer);
      outputs.forEach((output, i) => output.show(answer.outputs[i]));
    },
  );
  const inputs = about.inputs.map((control) => inputCard(control, () => asker.ask()));
  $(".inputs", panel).append(...inputs.map((input) => input.element));
  $(".outputs", panel).append(...outputs.map((output) => output.element));
  if (about.remembers || !inputs.length) $(".inputs", panel).append(steps(asker, about.remembers));
  asker.ask();
}

// A model that remembers answers otherwise each time: it can be asked again, and again and again.
function steps(asker, remembers) {
  const play = make("button", { type: "button", className: "play" }, "Play");
  let timer = null;
  const step = () => play.isConnected && trouble.hidden ? asker.ask() : play.onclick();
  play.onclick = () => {
    timer = timer ? clearInterval(timer) : setInterval(step, RATE);
    play.textContent = timer ? "Pause" : "Play";
  };
  const forget = async () => {
    try {
      await ask("model/reset", "");
      settle();
      asker.ask();
    } catch (error) {
      complain(error, forget);
    }
  };
  return make("div", { className: "card" }, make("h2", {}, "Steps"),
    make("div", { className: "buttons" }, make("button", { type: "button", onclick: () => asker.ask() }, "Step"), play,
      ...remembers ? [make("button", { type: "button", onclick: forget }, "Reset")] : []),
    ...remembers ? [make("p", { className: "note" }, "The model remembers: each answer depends on those before.")] : []);
}
