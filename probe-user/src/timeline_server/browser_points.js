
// Appended to main.js by browser_tests.rs, for a recording with messages, a plot and frame marks.
(async () => {
  const seen = {};
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
  const stage = byId('stage');
  const tip = byId('tip');
  const at = (x, y) => {
    const box = stage.getBoundingClientRect();
    return { clientX: box.left + x, clientY: box.top + RULER + y, pointerId: 1, button: 0 };
  };
  const hover = async (x, y) => {
    stage.dispatchEvent(new PointerEvent('pointermove', at(x, y)));
    await wait();
  };
  stage.setPointerCapture = () => {};
  const canvas = byId('picture');
  const pixels = (x, y, width, height) => canvas.getContext('2d').getImageData(x, y, width, height).data;
  const ground = theme().ground;
  const isDrawn = (data, n) => ground.some((part, channel) => data[4 * n + channel] !== part);
  try {
    await wait();
    await until('the picture is there', () => document.documentElement.dataset.ready === 'true');
    await until('there is room for the plot', () => byId('names').firstChild?.style.top === `${RULER + 46}px`);
    await new Promise((done) => setTimeout(done, 300));
    await until('all is there', () => document.documentElement.dataset.ready === 'true');
    // The whole recording is on the screen: 1,001 ms.
    const x = (ms) => stage.clientWidth * ms / 1001;
    const tops = [...byId('names').children].map((name) => [name.textContent, Number.parseFloat(name.style.top) - RULER]);
    const top = (name) => tops.find(([text]) => text.startsWith(name))[1];
    await hover(x(500), top('other') + 12);
    await until('texts are told', () => tip.textContent.includes('late'));
    seen.message = tip.textContent;
    await hover(x(400), 20);
    seen.plot = tip.textContent;
    await hover(x(250), top('other') + 12);
    seen.mark = tip.textContent;
    stage.dispatchEvent(new PointerEvent('pointerdown', at(x(500), top('other') + 12)));
    stage.dispatchEvent(new PointerEvent('pointerup', at(x(500), top('other') + 12)));
    const panel = byId('panel');
    await until('messages are listed', () => panel.querySelector('table.messages'));
    seen.listed = panel.querySelector('h2').textContent;
    seen.rows = panel.querySelectorAll('table.messages tr').length;
    await wait();
    await until('the picture is there again', () => document.documentElement.dataset.ready === 'true');
    await new Promise((done) => setTimeout(done, 300));
    await until('all is there again', () => document.documentElement.dataset.ready === 'true');
    // Below the plot's label: the lowest pixel that is drawn at an early and at a late time.
    seen.heights = [430, 900].map((ms) => {
      const column = pixels(Math.round(canvas.width * ms / 1001), 0, 1, 37);
      return Array.from({ length: 37 }, (_, y) => y).filter((y) => y > 14 && isDrawn(column, y)).pop() ?? 0;
    });
    // Below all threads are only the marks.
    const line = pixels(0, canvas.height - 5, canvas.width, 1);
    seen.lines = Array.from({ length: canvas.width }, (_, n) => n).filter((n) => isDrawn(line, n)).length;
    seen.title = document.title;
    seen.markup = document.querySelectorAll('img, iframe, object, embed, script:not([src])').length;
  } catch (error) {
    seen.error = String(error);
  }
  document.documentElement.dataset.seen = JSON.stringify(seen);
})();
