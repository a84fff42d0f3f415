
// For two recordings with the same functions.
watch(async (seen) => {
  await until('there are frames', () => byId('new')?.contentDocument && byId('old')?.contentDocument);
  await lanesSettled();
  const panel = byId('panel');
  await until('there are verdicts', () => panel.querySelector('table.functions'));
  const rows = [...panel.querySelectorAll('tr.call')];
  seen.rows = rows.map((row) => [...row.children].slice(0, 2).map((cell) => cell.textContent));
  rows.find((row) => row.firstChild.textContent === 'handle_request').click();
  const titles = () => lanes((page) => page.querySelector('#panel h2')?.textContent ?? '');
  await until('both show calls', () => titles().every((title) => title.includes(' of ')));
  seen.titles = titles();
  await lanesSettled();
  [, seen.whole] = lanes(shownBy);
  lane('old').querySelector('#panel tr.call').click();
  await lanesSettled();
  seen.shown = lanes(shownBy);
  seen.frames = document.querySelectorAll('iframe').length;
});
