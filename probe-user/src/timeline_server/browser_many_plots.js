
// For a recording with more plots than have room, of which values are lost.
watch(async (seen) => {
  await settled();
  seen.status = byId('status').textContent;
  // The last plot that has room is above the first thread.
  Array.from({ length: 5 }, () => press('PageDown'));
  await settled();
  const stage = byId('stage');
  mouse(stage, 'pointermove', stage.clientWidth * 0.64, Number.parseFloat(byId('names').firstChild.style.top) - 20);
  seen.last = byId('tip').textContent;
  // A question without an answer is asked again.
  let asked = 0;
  const { fetch } = window;
  window.fetch = (path, ...more) => {
    const isFirst = String(path).startsWith('api/points') && ++asked === 1;
    return isFirst ? Promise.reject(new TypeError('no network')) : fetch.call(window, path, ...more);
  };
  press('w');
  await until('it is asked again', () => asked > 1);
  await settled();
  seen.again = byId('status').textContent;
});
