
// For a recording of two processes with the threads main, worker and child. A reload is a frame with the same address.
if (window.parent === window) watch(async (seen) => {
  const names = (page) => [...page.querySelectorAll('#names > div')].map((label) =>
    label.matches('.process') ? label.textContent : label.querySelector('b').textContent);
  const button = (thread, name) => [...byId('names').children]
    .find((label) => label.querySelector('b').textContent === thread).querySelector(`button.${name}`);
  const show = byId('hidden');
  await settled();
  seen.all = names(document);
  button('worker', 'hide').click();
  await settled();
  [seen.without, seen.button] = [names(document), show.hidden ? '' : show.textContent];
  button('child', 'pin').click();
  await settled();
  seen.pinned = names(document);
  const frame = element('iframe');
  frame.src = `?again${location.hash}`;
  document.body.append(frame);
  await until('the frame is there', () => frame.contentDocument?.documentElement.dataset.ready === 'true');
  seen.reloaded = names(frame.contentDocument);
  frame.remove();
  await settled();
  // The rows of the pinned thread, and of main below the name of its process; nothing is below them.
  const canvas = byId('picture');
  const ground = theme().ground;
  const middle = (y) => canvas.getContext('2d').getImageData(canvas.width / 2, y, 1, 1).data;
  seen.rows = [18 + 8, 42 + 18 + 18 + 8, 102 + 18 + 8].map((y) => ground.some((part, n) => middle(y)[n] !== part));
  show.click();
  await settled();
  [seen.shown, seen.left] = [names(document), show.hidden];
  button('child', 'pin').click();
  await settled();
  seen.unpinned = names(document);
  // The mouse is at the row of main.
  mouse(byId('stage'), 'pointermove', 300, RULER + 18 + 18 + 8);
  press('h');
  await settled();
  seen.keys = [names(document)];
  press('u');
  await settled();
  seen.keys.push(names(document));
});
