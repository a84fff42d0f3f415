
// For a recording of two processes with the threads main, worker and child, of one row each.
const middles = (page) => [18 + 18 + 8, 60 + 18 + 8, 102 + 18 + 18 + 8].map((y) => {
  const canvas = page.getElementById('picture');
  return [...canvas.getContext('2d').getImageData(canvas.width / 2, y, 1, 1).data].slice(0, 3);
});
if (window.parent === window) watch(async (seen) => {
  const choose = async (value) => {
    byId('colour').value = value;
    byId('colour').dispatchEvent(new Event('change'));
    await settled();
  };
  await settled();
  seen.functions = middles(document);
  await choose('object');
  seen.objects = middles(document);
  seen.legend = [...byId('objects').children].map((line) => line.textContent.trim());
  const frame = element('iframe');
  frame.src = `?again${location.hash}`;
  frame.style.cssText = 'width:800px;height:500px';
  document.body.append(frame);
  await until('the frame is there', () => frame.contentDocument?.documentElement.dataset.ready === 'true');
  seen.reloaded = middles(frame.contentDocument);
  frame.remove();
  await settled();
  await choose('function');
  seen.again = middles(document);
});
