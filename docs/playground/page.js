// The page around the engine: editors, a checker that runs while the user types, and one fit at a time.

const at = (id) => document.getElementById(id);
const examples = JSON.parse(at('examples').textContent);
const workerUrl = URL.createObjectURL(new Blob([at('worker').textContent], { type: 'text/javascript' }));

// ---- The engine.

/** The WebAssembly module, which this page holds as gzip in base 64. */
async function compiled() {
  const packed = Uint8Array.from(atob(at('engine').textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** An engine in its own worker thread. */
class Engine {
  constructor(module, tell = () => {}) {
    this.worker = new Worker(workerUrl);
    this.waiting = new Map();
    this.bug = '';
    this.ready = new Promise((resolve) => {
      this.worker.onmessage = ({ data }) => {
        if (data.ready) resolve();
        else if (data.progress) tell(data.progress);
        else if (data.bug && data.id === undefined) this.bug = data.bug;
        else {
          this.waiting.get(data.id)?.({ ...data, bug: data.bug && (this.bug || data.bug) });
          this.waiting.delete(data.id);
        }
      };
    });
    this.worker.postMessage({ module });
  }

  async ask(what, task) {
    await this.ready;
    const id = crypto.getRandomValues(new Uint32Array(1))[0];
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.worker.postMessage({ id, what, task });
    });
  }

  end() {
    this.worker.terminate();
  }
}

// ---- The editor: a text area above a painted copy of its text.

const KINDS = [
  ['c', /\/\/[^\n]*|\/\*[\s\S]*?\*\/|#include[^\n]*/],
  ['s', /"[^"\n]*"/],
  ['k', /\b(?:functions|transformed data|data|transformed parameters|parameters|model|generated quantities|for|in|while|if|else|return|break|continue|target|print|reject|profile|lower|upper|offset|multiplier)\b/],
  ['t', /\b(?:int|real|complex|vector|row_vector|matrix|complex_vector|complex_row_vector|complex_matrix|array|tuple|void|simplex|unit_vector|ordered|positive_ordered|sum_to_zero_vector|corr_matrix|cov_matrix|cholesky_factor_corr|cholesky_factor_cov|column_stochastic_matrix|row_stochastic_matrix|sum_to_zero_matrix)\b/],
  ['n', /\b\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?i?\b/],
];
const TOKEN = new RegExp(KINDS.map(([, pattern]) => `(${pattern.source})`).join('|'), 'g');

const escaped = (text) => text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);

/** The text with its words coloured and its mistakes underlined. */
function painted(text, mistakes) {
  const marks = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    marks.push({ from: match.index, to: match.index + match[0].length, kind: KINDS[kind][0] });
  }
  const ends = new Set([0, text.length]);
  const lines = mistakes.map(({ severity, range }) => {
    // An empty range is the end of a token or of the text: mark the character before it.
    const from = range.from < range.to ? range.from : Math.max(range.from - 1, 0);
    return { from, to: Math.max(range.to, from + 1), kind: severity };
  });
  for (const { from, to } of [...marks, ...lines]) ends.add(from).add(Math.min(to, text.length));
  const cuts = [...ends].sort((a, b) => a - b);
  let mark = 0;
  let out = '';
  for (let i = 0; i + 1 < cuts.length; i += 1) {
    const [from, to] = [cuts[i], cuts[i + 1]];
    while (mark < marks.length && marks[mark].to <= from) mark += 1;
    const inside = ({ from: a, to: b }) => a <= from && to <= b;
    const kinds = [...(marks[mark] && inside(marks[mark]) ? [marks[mark].kind] : []), ...lines.filter(inside).map((line) => line.kind)];
    const part = escaped(text.slice(from, to));
    out += kinds.length > 0 ? `<span class="${[...new Set(kinds)].join(' ')}">${part}</span>` : part;
  }
  // The break gives an empty last line its height.
  return `${out}\n`;
}

const program = at('program');
const data = at('data');
let mistakes = [];

function paint() {
  at('paint').innerHTML = painted(program.value, mistakes);
  at('paint').scrollTop = program.scrollTop;
  at('paint').scrollLeft = program.scrollLeft;
}

program.addEventListener('scroll', () => {
  at('paint').scrollTop = program.scrollTop;
  at('paint').scrollLeft = program.scrollLeft;
});

// Indents a new line as the line before it, and further after an opening brace.
program.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || event.isComposing) return;
  const before = program.value.slice(0, program.selectionStart);
  const line = before.slice(before.lastIndexOf('\n') + 1);
  const deeper = /\{\s*$/.test(line) ? '  ' : '';
  event.preventDefault();
  document.execCommand('insertText', false, `\n${/^\s*/.exec(line)[0]}${deeper}`);
});

// ---- Diagnostics of the checker.

let checker;
let requests = 0;
let timer;

function say(found) {
  mistakes = found.diagnostics;
  paint();
  at('said').replaceChildren(
    ...mistakes.map(({ severity, line, column, message, range, notes, help }) => {
      const item = document.createElement('li');
      const jump = document.createElement('button');
      item.className = severity === 'warning' ? 'remark' : '';
      jump.type = 'button';
      jump.textContent = `line ${line}, column ${column}: ${message}${range.text ? ` (${range.text})` : ''}`;
      jump.addEventListener('click', () => {
        program.focus();
        program.setSelectionRange(range.from, Math.max(range.to, range.from));
      });
      item.append(jump);
      for (const words of [...notes, ...help]) {
        const more = document.createElement('small');
        more.textContent = words;
        item.append(more);
      }
      return item;
    }),
  );
  const names = found.variables.map(({ name, shape }) => (shape.length > 0 ? `${name}[${shape.join(', ')}]` : name));
  at('data-said').className = found.data ? 'said wrong' : 'said';
  at('data-said').textContent = found.data ?? (names.length > 0 ? `The program and its data fit together: ${names.join(', ')}.` : '');
}

async function look() {
  const number = (requests += 1);
  const found = await checker.ask('check', { program: program.value, data: data.value });
  // Ignore an answer about an earlier text.
  if (number !== requests) return;
  if (found.bug) say({ diagnostics: [], data: `The checker has failed: ${found.bug}`, variables: [] });
  else say(found.answer);
}

function changed() {
  mistakes = [];
  paint();
  clearTimeout(timer);
  if (checker) timer = setTimeout(look, 150);
}

program.addEventListener('input', changed);
data.addEventListener('input', changed);
at('file').addEventListener('change', async ({ target }) => {
  const [file] = target.files;
  if (!file) return;
  data.value = await file.text();
  changed();
});

// ---- A fit.

let module;
let fitter;
let saved = [];

function flags() {
  const number = (id) => (at(id).value === '' ? undefined : Number(at(id).value));
  return {
    family: at('family').value,
    refine: at('refine').value,
    draws: number('draws'),
    seed: number('seed'),
    max_seconds: number('seconds'),
  };
}

function show(...ids) {
  for (const id of ['run', 'outcome', 'failure', 'hint']) at(id).hidden = !ids.includes(id);
}

/** Draws the bound so far in the 400 × 120 picture, without the steep start. */
function draw(bounds) {
  const shown = bounds.slice(Math.floor(bounds.length / 4)).filter(Number.isFinite);
  const [low, high] = [Math.min(...shown), Math.max(...shown)];
  const point = (bound, i) => `${(8 + (384 * i) / Math.max(shown.length - 1, 1)).toFixed(1)},${(110 - (100 * (bound - low)) / (high - low || 1)).toFixed(1)}`;
  at('line').setAttribute('points', shown.map(point).join(' '));
}

function save(name, type, content) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.textContent = name;
  saved.push(link.href);
  at('saves').append(link);
}

function busy(is) {
  at('fit').disabled = is;
  at('stop').disabled = !is;
}

async function run() {
  busy(true);
  show('run');
  at('state').textContent = 'Fitting …';
  at('progress').textContent = '';
  saved.splice(0).forEach((url) => URL.revokeObjectURL(url));
  at('saves').replaceChildren();
  const bounds = [];
  draw(bounds);
  const begun = performance.now();
  fitter = new Engine(module, (word) => {
    if (word.note) {
      at('progress').textContent = word.note;
      return;
    }
    bounds.push(word.bound);
    draw(bounds);
    // JSON has null for a bound that is not a number.
    const bound = word.bound === null ? 'not finite yet' : `${word.bound.toFixed(2)} nats`;
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    at('progress').textContent = `${word.stage}, iteration ${word.iteration}: bound ${bound}, ${seconds} s`;
  });
  const found = await fitter.ask('fit', { program: program.value, data: data.value, flags: flags() });
  fitter.end();
  busy(false);
  const wrong = found.bug ? `Internal error, please report it: ${found.bug}` : found.answer.error;
  if (wrong) {
    at('state').textContent = 'The fit failed.';
    at('failure').textContent = wrong;
    show('failure');
    return;
  }
  const { trusted, summary, report, draws } = found.answer;
  at('state').textContent = `Done in ${found.seconds.toFixed(1)} s.`;
  at('verdict').className = trusted ? 'good' : 'poor';
  at('verdict').textContent = trusted ? 'The draws can be trusted' : 'Not to be trusted: see the reasons in the report';
  save('report.html', 'text/html', report);
  save('draws.csv', 'text/csv', draws);
  save('fit.json', 'application/json', JSON.stringify(summary, null, 2));
  at('report').srcdoc = report;
  show('outcome');
}

at('fit').addEventListener('click', run);
at('stop').addEventListener('click', () => {
  fitter.end();
  busy(false);
  at('state').textContent = 'Stopped.';
  show('hint');
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !at('fit').disabled) run();
});

// ---- Links: the fragment has the program, data and settings, deflated and in base 64 for URLs.

const piped = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

async function link() {
  const state = JSON.stringify({ program: program.value, data: data.value, flags: flags() });
  const bytes = await piped(new TextEncoder().encode(state), new CompressionStream('deflate-raw'));
  let letters = '';
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

async function linked(fragment) {
  const letters = atob(fragment.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = await piped(Uint8Array.from(letters, (c) => c.charCodeAt(0)), new DecompressionStream('deflate-raw'));
  return JSON.parse(new TextDecoder().decode(bytes));
}

at('share').addEventListener('click', async () => {
  location.hash = await link();
  try {
    await navigator.clipboard.writeText(location.href);
    at('shared').textContent = 'Copied.';
  } catch {
    at('shared').textContent = 'The link is in the address bar.';
  }
});

// ---- Start.

function put({ program: text, data: values, flags: set = {} }) {
  program.value = text;
  data.value = values;
  for (const [id, name] of [['family', 'family'], ['refine', 'refine'], ['draws', 'draws'], ['seed', 'seed'], ['seconds', 'max_seconds']]) {
    if (set[name] !== undefined) at(id).value = set[name];
  }
  changed();
}

for (const [number, { name }] of examples.entries()) at('example').add(new Option(name, number));
at('example').addEventListener('change', ({ target }) => put(examples[target.value]));

async function start() {
  put(examples[0]);
  if (location.hash.length > 1) {
    try {
      put(await linked(location.hash.slice(1)));
    } catch {
      at('shared').textContent = 'The link is damaged. The page shows an example instead.';
    }
  }
  try {
    module = await compiled();
    checker = new Engine(module);
    await checker.ready;
  } catch (error) {
    at('state').textContent = `This browser cannot run the engine: ${error}`;
    return;
  }
  at('state').textContent = 'Ready.';
  busy(false);
  look();
}

start();
