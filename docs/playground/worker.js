// Runs the engine in a worker thread. The first message has the WebAssembly module, and each later message has a task.

let engine;

const text = (from, length) => new TextDecoder().decode(new Uint8Array(engine.memory.buffer, from, length));

/** The answer of the engine to a task. */
function solve(what, task) {
  const bytes = new TextEncoder().encode(JSON.stringify(task));
  const address = engine.allocate(bytes.length);
  new Uint8Array(engine.memory.buffer, address, bytes.length).set(bytes);
  engine[what](address, bytes.length);
  return JSON.parse(text(engine.answer(), engine.answer_length()));
}

onmessage = async ({ data }) => {
  if (data.module) {
    const page = {
      seconds: () => performance.now() / 1000,
      tell: (from, length) => postMessage({ progress: JSON.parse(text(from, length)) }),
      panicked: (from, length) => postMessage({ bug: text(from, length) }),
    };
    engine = (await WebAssembly.instantiate(data.module, { page })).exports;
    postMessage({ ready: true });
    return;
  }
  const { id, what, task } = data;
  try {
    const begun = performance.now();
    const answer = solve(what, task);
    postMessage({ id, answer, seconds: (performance.now() - begun) / 1000 });
  } catch (error) {
    postMessage({ id, bug: String(error) });
  }
};
