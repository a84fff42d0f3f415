
// For a recording with a call of the function that the address names.
watch(async (seen) => {
  const panel = byId('panel');
  const title = () => panel.querySelector('h2')?.textContent ?? '';
  const range = () => location.hash.match(/from=(-?\d+)&to=(\d+)/)?.[0];
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
  press('?');
  seen.legend = byId('help').open ? byId('help').textContent : '';
  byId('help').close();
  seen.whole = range();
  press('w');
  await settled();
  seen.zoomed = range();
  press('0');
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
  press('m');
  await until('a range is shown', () => panel.querySelector('table.functions'));
  seen.functions = [...panel.querySelectorAll('table.functions td:first-child')].map((cell) => cell.textContent);
  seen.report = panel.textContent;
  await settled();
  seen.hash = location.hash;
  press('Escape');
  seen.closed = panel.hidden;
});
