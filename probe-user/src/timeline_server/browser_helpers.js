
// Appended to main.js by browser_tests.rs, before the script of a test.

// Time is virtual and does not pass while the server answers: with an answer at each step, frames and
// other answers come in between.
const wait = async () => {
  await fetch('icon.svg');
  await new Promise((done) => setTimeout(done, 25));
};
const until = async (what, is) => {
  for (let tries = 0; tries < 4000; tries++) {
    if (is()) return;
    await wait();
  }
  throw new Error(`it never happens that ${what}`);
};
const settled = async () => {
  for (let times = 0; times < 2; times++) {
    await wait();
    await until('all is there', () => document.documentElement.dataset.ready === 'true');
    await new Promise((done) => setTimeout(done, 300));
  }
  await until('all is there', () => document.documentElement.dataset.ready === 'true');
};
const press = (name) => document.dispatchEvent(new KeyboardEvent('keydown', { key: name }));
/** The mouse at a place of an element. */
const mouse = (target, name, x, y, more = {}) => {
  const box = target.getBoundingClientRect();
  target.setPointerCapture = () => {};
  const place = { clientX: box.left + x, clientY: box.top + y, pointerId: 1, button: 0, bubbles: true, ...more };
  target.dispatchEvent(new PointerEvent(name, place));
};
const clickAt = (target, x, y) => ['pointerdown', 'pointerup'].forEach((name) => mouse(target, name, x, y));
/** Leaves what a test has seen in the document. */
const watch = async (look) => {
  const seen = {};
  try {
    await look(seen);
    seen.markup = document.querySelectorAll('img, iframe, object, embed, script:not([src])').length;
  } catch (error) {
    seen.error = String(error);
  }
  document.documentElement.dataset.seen = JSON.stringify(seen);
};
