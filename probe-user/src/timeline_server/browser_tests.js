
// Appended to main.js by browser_tests.rs.
(async () => {
  const seen = {};
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
  const key = (name) => document.dispatchEvent(new KeyboardEvent('keydown', { key: name }));
  const panel = byId('panel');
  const title = () => panel.querySelector('h2')?.textContent ?? '';
  const range = () => location.hash.match(/from=(-?\d+)&to=(\d+)/)?.[0];
  const settled = async () => {
    await wait();
    await until('the picture is there', () => document.documentElement.dataset.ready === 'true');
    await new Promise((done) => setTimeout(done, 300));
  };
  try {
    await settled();
    seen.title = document.title;
    seen.names = byId('names').children.length;
    // The first row, behind the ruler and the name of its thread.
    const canvas = byId('picture');
    const line = canvas.getContext('2d').getImageData(0, 18 + 8, canvas.width, 1).data;
    const ground = theme().ground;
    let covered = 0;
    for (let x = 0; x < canvas.width; x++) {
      if (ground.some((part, n) => line[4 * x + n] !== part)) covered++;
    }
    seen.covered = covered / canvas.width;
    const box = byId('stage').getBoundingClientRect();
    const [clientX, clientY] = [box.left + box.width / 2, box.top + 34 + 18 + 8];
    byId('stage').dispatchEvent(new PointerEvent('pointermove', { clientX, clientY }));
    seen.tip = byId('tip').hidden ? '' : byId('tip').textContent;
    const { keptFrom } = Page.prototype;
    Page.prototype.keptFrom = () => Number.MAX_SAFE_INTEGER;
    byId('stage').dispatchEvent(new PointerEvent('pointermove', { clientX, clientY: box.top + 1 }));
    seen.missing = byId('tip').hidden ? '' : byId('tip').textContent;
    Page.prototype.keptFrom = keptFrom;
    byId('stage').dispatchEvent(new PointerEvent('pointermove', { clientX, clientY: box.top + 1 }));
    seen.nothing = byId('tip').hidden;
    key('?');
    seen.legend = byId('help').open ? byId('help').textContent : '';
    byId('help').close();
    seen.whole = range();
    key('w');
    await settled();
    seen.zoomed = range();
    key('0');
    await settled();
    seen.again = range();
    byId('find').value = location.search.slice(1);
    byId('find').dispatchEvent(new Event('change'));
    await until('calls are found', () => title().includes(' of '));
    seen.found = title();
    panel.querySelector('tr.call').click();
    await until('a call is shown', () => panel.textContent.includes('begins at'));
    seen.call = title();
    seen.facts = panel.textContent;
    key('m');
    await until('a range is shown', () => panel.querySelector('table.functions'));
    seen.functions = [...panel.querySelectorAll('table.functions td:first-child')].map((cell) => cell.textContent);
    seen.report = panel.textContent;
    await settled();
    seen.hash = location.hash;
    seen.markup = document.querySelectorAll('img, iframe, object, embed, script:not([src])').length;
    key('Escape');
    seen.closed = panel.hidden;
  } catch (error) {
    seen.error = String(error);
  }
  document.documentElement.dataset.seen = JSON.stringify(seen);
})();
