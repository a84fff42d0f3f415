
// For a recording of two processes, whose first row is below the name of a process and that of a thread.
watch(async (seen) => {
  const panel = byId('panel');
  const commands = () => [...panel.querySelectorAll('code')].map((line) => line.textContent);
  await settled();
  byId('keep').click();
  await settled();
  seen.whole = commands();
  // The file is looked at instead of being downloaded.
  const saved = new Promise((done) => {
    URL.createObjectURL = (blob) => {
      HTMLAnchorElement.prototype.click = function click() { done({ blob, name: this.download }); };
      return 'icon.svg';
    };
  });
  [...panel.querySelectorAll('button')].find((button) => button.textContent === 'save as PNG').click();
  const { blob, name } = await saved;
  const image = await createImageBitmap(blob);
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [image.width, image.height];
  const context = copy.getContext('2d');
  context.drawImage(image, 0, 0);
  const row = (of, y) => [...of.getImageData(copy.width / 2, y, 1, 1).data].join();
  const y = 18 + 18 + 8;
  seen.size = [byId('picture').width, byId('ruler').height + byId('picture').height];
  seen.row = row(byId('picture').getContext('2d'), y);
  const letters = context.getImageData(0, RULER + 18, 60, 16).data;
  const hues = new Set(Array.from({ length: letters.length / 4 }, (_, n) => letters[4 * n]));
  // Letters are smooth: the ground, the box of a name and its letters have more than three shades.
  seen.png = { kind: blob.type, name, size: [image.width, image.height], row: row(context, byId('ruler').height + y), hasName: hues.size > 3 };
  press('w');
  await settled();
  await until('the address is written', () => !location.hash.includes('from=0&'));
  [seen.zoomed, seen.shown] = [commands(), shownBy(window).map((time) => `${time}ns`).join('..')];
  press('Escape');
  press('0');
  await settled();
  const stage = byId('stage');
  mouse(stage, 'pointerdown', 300, RULER + 150, { shiftKey: true });
  mouse(stage, 'pointermove', 600, RULER + 150, { shiftKey: true });
  mouse(stage, 'pointerup', 600, RULER + 150, { shiftKey: true });
  await until('a range is shown', () => panel.querySelector('code'));
  seen.range = commands();
  await settled();
  const [from, to] = new URLSearchParams(location.hash.slice(1)).get('range').split('..');
  seen.part = `${from}ns..${to}ns`;
});
