// The engine in a thread of its own: told a module once, then tasks.

let engine;

const text = (from, length) => new TextDecoder().decode(new Uint8Array(engine.memory.buffer, from, length));

/** What the engine says to a task. */
function asked(what, task) {
  const bytes = new TextEncoder().encode(JSON.stringify(task));
  const room = engine.allocate(bytes.length);
  new Uint8Array(engine.memory.buffer, room, bytes.length).set(bytes);
  engine[what](room, bytes.length);
  return JSON.parse(text(engine.answer(), engine.answer_length()));
}

onmessage = async ({ data }) => {
  if (data.module) {
    const page = {
      seconds: () => performance.now() / 1000,
      tell: (from, length) => postMessage({ told: JSON.parse(text(from, length)) }),
      panicked: (from, length) => postMessage({ bug: text(from, length) }),
    };
    engine = (await WebAssembly.instantiate(data.module, { page })).exports;
    postMessage({ ready: true });
    return;
  }
  const { id, what, task } = data;
  try {
    const begun = performance.now();
    const answer = asked(what, task);
    postMessage({ id, answer, seconds: (performance.now() - begun) / 1000 });
  } catch (error) {
    postMessage({ id, bug: String(error) });
  }
};
