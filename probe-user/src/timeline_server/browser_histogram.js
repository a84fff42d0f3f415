
// For a recording with many calls of the function that the address names.
watch(async (seen) => {
  const panel = byId('panel');
  const canvas = byId('picture');
  const pixels = () => new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const find = async () => {
    byId('find').value = location.search.slice(1);
    byId('find').dispatchEvent(new Event('change'));
    await until('calls are found', () => panel.querySelector('h2')?.textContent.includes(' of '));
  };
  await settled();
  await find();
  const about = await (await fetch('api/about')).json();
  seen.function = about.functions.findIndex(({ name }) => name === location.search.slice(1));
  panel.querySelector('p.more button').click();
  await until('there are bars', () => panel.querySelector('canvas.histogram'));
  await settled();
  const before = pixels();
  const histogram = panel.querySelector('canvas.histogram');
  const { width: wide } = histogram.getBoundingClientRect();
  const titles = new Set();
  for (let x = 0.5; x < wide; x++) {
    mouse(histogram, 'pointermove', x, 20);
    titles.add(histogram.title);
  }
  seen.bars = titles.size;
  seen.first = Math.floor(0.51 * titles.size);
  mouse(histogram, 'pointerdown', 0.51 * wide, 20);
  mouse(histogram, 'pointermove', wide - 1, 20);
  mouse(histogram, 'pointerup', wide - 1, 20);
  await until('calls are lit', () => panel.textContent.includes('are lit'));
  seen.count = Number(panel.querySelector('.lit p').textContent.split(' ')[0].replaceAll(',', ''));
  await settled();
  const after = pixels();
  const ground = before[before.length - 1];
  const count = (is) => before.reduce((sum, colour, n) => sum + (colour !== ground && is(colour, after[n]) ? 1 : 0), 0);
  seen.lit = count((one, other) => one === other);
  seen.dim = count((one, other) => one !== other);
  press('Escape');
  await find();
  await settled();
  const again = pixels();
  seen.after = before.reduce((sum, colour, n) => sum + (colour === again[n] ? 0 : 1), 0);
});
