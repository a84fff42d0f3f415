// Before the scripts of a page: measures how long they take in each frame. VIEWS are put before this.

const bench = (() => {
  let spent = 0;
  const nextFrame = window.requestAnimationFrame.bind(window);
  const timed = (work) => {
    const begin = performance.now();
    try {
      return work();
    } finally {
      spent += performance.now() - begin;
    }
  };
  window.requestAnimationFrame = (work) => nextFrame((now) => timed(() => work(now)));
  // It ends behind all that the page does in the frame.
  const frame = () => new Promise((done) => nextFrame(done));
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const until = async (what, is) => {
    while (!is()) await pause(20);
  };
  // Zooms in and out, a step a frame, at several places. `step` is told whether in (-1) or out (1), and where.
  const zoom = async (rounds, steps, step) => {
    const [scripts, frames] = [[], []];
    let before = await frame();
    for (let round = 0; round < rounds; round++) {
      const place = 0.1 + (0.37 * round) % 0.8;
      for (const direction of [-1, 1]) {
        for (let n = 0; n < steps; n++) {
          spent = 0;
          timed(() => step(direction, place));
          const now = await frame();
          scripts.push(spent);
          frames.push(now - before);
          before = now;
        }
      }
    }
    return { scripts, frames };
  };
  return { add: (ms) => { spent += ms; }, timed, frame, pause, until, zoom };
})();
