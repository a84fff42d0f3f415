
// For two recordings with a frame mark each 250 ms; the new one's are 130 ms later.
watch(async (seen) => {
  await until('there are frames', () => byId('new')?.contentDocument && byId('old')?.contentDocument);
  await lanesSettled();
  const starts = () => lanes((page) => shownBy(page)[0]);
  seen.starts = starts();
  const set = (id, value) => {
    byId(id).value = value;
    byId(id).dispatchEvent(new Event('change'));
  };
  set('align', 'call');
  set('nth', '2');
  set('of', 'picture');
  await until('they are aligned', () => byId('status').textContent.includes('moved by'));
  seen.status = byId('status').textContent;
  await lanesSettled();
  seen.aligned = starts();
  lane('old').dispatchEvent(new KeyboardEvent('keydown', { key: 'w' }));
  await lanesSettled();
  seen.moved = starts();
  set('nth', '9');
  await until('there are too few', () => byId('status').textContent.includes('only'));
  seen.few = byId('status').textContent;
  set('align', 'start');
  await lanesSettled();
  seen.again = starts();
});
