// The tabs, requests to the board, what went wrong, and the figures below each tab.

const $ = (selector, inside = document) => inside.querySelector(selector);

// An element. Properties are set as they are; children are elements or text.
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const copy = (id) => document.getElementById(id).content.cloneNode(true);

class Trouble extends Error {
  constructor(reply) {
    super(reply.error);
    this.reply = reply;
  }
}

async function ask(path, body) {
  const send = () => fetch(`api/${path}`, body === undefined ? {} : { method: "POST", body });
  let answer;
  try {
    answer = await send().catch(send); // a line that was idle for long may be closed: once more, on a new one
  } catch {
    throw new Trouble({ error: "the studio does not answer", try: ["start `baretorch studio` again in the terminal"] });
  }
  const reply = await answer.json();
  if (!answer.ok) throw new Trouble(reply);
  return reply;
}

const trouble = document.getElementById("trouble");

// What failed stays to be read until it works, or until somebody has read it: `passing` troubles go with an answer.
function complain(error, retry, passing = true) {
  const reply = error instanceof Trouble ? error.reply : { error: String(error) };
  const rows = ["at", "have", "need", "try"].flatMap((label) => (reply[label] ?? []).map((text, i) =>
    make("div", {}, make("dt", {}, i ? "" : label), make("dd", {}, text))));
  const button = (title, then) => make("button", { type: "button", onclick: () => { settle(); then(); } }, title);
  trouble.replaceChildren(make("p", { className: "what" }, reply.error), make("dl", {}, ...rows),
    make("div", { className: "buttons" }, button("Try again", retry), button("Dismiss", () => {})));
  trouble.passing = passing;
  trouble.hidden = false;
}

function settle() {
  trouble.hidden = true;
}

function answered() {
  if (trouble.passing) settle();
}

const PATIENCE = 300; // milliseconds before the page says that it waits

const asking = { // whether an answer is still to come
  count: 0,
  get busy() { return this.count > 0; },
  change(by) {
    this.count += by;
    clearTimeout(this.timer);
    if (this.busy) this.timer = setTimeout(() => document.body.classList.add("busy"), PATIENCE);
    else document.body.classList.remove("busy");
  },
};

// Asks the board with the newest inputs, one request at a time: what came in between is never asked.
class Asker {
  constructor(send, show) {
    Object.assign(this, { send, show, busy: false, waiting: false });
  }

  async ask() {
    this.waiting = true;
    if (this.busy) return;
    this.busy = true;
    asking.change(1);
    try {
      while (this.waiting) {
        this.waiting = false;
        const answer = await this.send();
        if (answer) {
          answered();
          this.show(answer);
        }
      }
    } catch (error) {
      this.waiting = false;
      complain(error, () => this.ask());
    } finally {
      this.busy = false;
      asking.change(-1);
    }
  }
}

const grouped = (n) => n.toLocaleString("en-US");

// Short, and as long for all numbers of about the same size.
function number(v) {
  if (typeof v !== "number") return String(v);
  if (v === 0 || Number.isInteger(v) && Math.abs(v) < 1e6) return grouped(v);
  const size = Math.abs(v);
  return size >= 1e5 || size < 1e-3 ? v.toExponential(2) : v.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
}

// The figures of the last answer, memory, warnings.
class Facts {
  constructor(about, again) {
    this.element = copy("facts").firstElementChild;
    this.tiles = $(".tiles", this.element);
    $(".banks", this.element).append(...about.memory.map(bankRow));
    $(".memory", this.element).hidden = about.memory.length === 0;
    $(".map .scroll", this.element).innerHTML = about.map;
    $(".warnings", this.element).append(...about.warnings.map((w) => make("p", { className: "warning" }, w)));
    $(".again", this.element).onclick = again;
    this.machine = about.machine;
    this.show({});
  }

  show({ instructions, time, stack, answers }) {
    const counted = instructions != null;
    const uncounted = `not counted by ${this.machine === "serial" ? "a real board" : this.machine}`;
    this.tiles.replaceChildren(
      tile("Instructions", counted ? grouped(instructions) : "–", "", counted ? "of one answer, exact" : answers ? uncounted : ""),
      tile("Time", time?.value ?? "–", time?.unit ?? "", time?.note ?? ""),
      tile("Stack", stack ? grouped(stack) : "–", stack ? "bytes" : "", stack ? "the deepest so far" : ""),
      tile("Answers", answers ? grouped(answers) : "–", "", answers ? "since the studio began" : ""),
    );
  }
}

function tile(title, value, unit, note) {
  return make("div", { className: "tile" }, make("h3", {}, title),
    make("p", { className: "value" }, make("b", {}, value), unit && ` ${unit}`), make("p", { className: "note" }, note));
}

function bankRow(bank) {
  const parts = bank.parts.map((part) => {
    const piece = make("span", { className: `k-${part.kind}` });
    piece.style.width = `${(100 * part.size) / bank.size}%`;
    piece.dataset.tip = `${part.kind}\n${grouped(part.size)} bytes`;
    return piece;
  });
  const legend = bank.parts.map((part) => make("span", { className: "key" },
    make("i", { className: `k-${part.kind}` }), `${part.kind} ${grouped(part.size)}`));
  return make("div", { className: "bank-row" },
    make("p", {}, make("b", {}, bank.title), ` ${bank.words}`),
    make("div", { className: "stack" }, ...parts), make("p", { className: "note" }, ...legend));
}

function where(about) {
  const place = about.real ? "on the board itself" : `emulated by ${about.machine}`;
  return [make("b", {}, about.model), ` ${about.dtype} · ${about.board} · ${about.chip} · `,
    make("span", { className: about.real ? "badge real" : "badge" }, place)];
}

// A tab is filled when it is first looked at: its model may have to be compiled.
class Tab {
  constructor(name, title, fill) {
    Object.assign(this, { name, fill, filled: false });
    const id = { role: "tab", id: `tab-${name}`, onclick: () => choose(this) };
    this.button = make("button", { ...id, type: "button" }, title);
    this.button.setAttribute("aria-controls", `panel-${name}`);
    this.panel = make("section", { id: `panel-${name}`, role: "tabpanel", hidden: true });
    this.panel.setAttribute("aria-labelledby", `tab-${name}`);
  }

  async open() {
    this.filled = true;
    this.panel.replaceChildren(copy("waiting"));
    try {
      this.build(await ask(this.name));
    } catch (error) {
      this.filled = false;
      this.panel.replaceChildren();
      complain(error, () => this.open(), false);
    }
  }

  async again() { // what is there goes on if that fails
    const button = $(".again", this.panel);
    Object.assign(button, { disabled: true, textContent: "Compiling …" });
    try {
      this.build(await ask(`${this.name}/again`, ""));
      for (const other of tabs) other.filled = other === this; // they may show the same model
      settle();
    } catch (error) {
      Object.assign(button, { disabled: false, textContent: "Compile again" });
      window.scrollTo(0, 0);
      complain(error, () => this.again(), false);
    }
  }

  build(about) {
    const facts = new Facts(about, () => this.again());
    this.panel.replaceChildren(copy(`${this.name}-panel`));
    $(".where", this.panel).append(...where(about));
    this.fill(this.panel, about, facts);
    this.panel.append(facts.element);
    document.title = `${about.model} – Baretorch studio`;
  }
}

const tabs = [];

function choose(tab) {
  settle();
  for (const other of tabs) {
    other.panel.hidden = other !== tab;
    other.button.ariaSelected = String(other === tab);
    other.button.tabIndex = other === tab ? 0 : -1;
  }
  if (!tab.filled) tab.open();
}

document.getElementById("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const at = tabs.findIndex((tab) => tab.button.ariaSelected === "true");
  const next = tabs[(at + step + tabs.length) % tabs.length];
  choose(next);
  next.button.focus();
});

async function begin() {
  const fills = { digits: fillDigits, model: fillModel };
  try {
    for (const { name, title } of await ask("tabs")) tabs.push(new Tab(name, title, fills[name]));
  } catch (error) {
    complain(error, begin);
    return;
  }
  document.getElementById("tabs").append(...tabs.map((tab) => tab.button));
  document.getElementById("panels").append(...tabs.map((tab) => tab.panel));
  choose(tabs[0]);
}

document.addEventListener("DOMContentLoaded", begin);
