// The visitor's files: each is checked when it is added, with a message that explains what is wrong with it.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { visits } from './visitor.mjs';

visits('files', (visitor) => {
  const head = (magic, ...sizes) => [0, 0, 8, magic, ...sizes.flatMap((size) => [size >>> 24, (size >>> 16) & 255, (size >>> 8) & 255, size & 255])];
  const images = (count, { bytes = 784 * count, side = 28 } = {}) => [...head(3, count, side, side), ...new Array(bytes).fill(255)];
  const labels = (count, { label = 3, bytes = count } = {}) => [...head(1, count), ...new Array(bytes).fill(label)];
  const packed = (bytes) => [...gzipSync(Uint8Array.from(bytes))];

  /** Drops files, given as names and bytes, onto the page. */
  const drop = (files) => visitor.page.eval((files) => {
    const transfer = new DataTransfer();
    for (const [name, bytes] of Object.entries(files)) transfer.items.add(new File([new Uint8Array(bytes)], name));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, files);
  const note = () => visitor.page.text('#files-note');
  const refusal = async (pattern) => {
    const said = () => document.querySelector('.notice[data-kind="file"]')?.textContent ?? '';
    await visitor.page.until((source) => new RegExp(source).test(document.querySelector('.notice[data-kind="file"]')?.textContent ?? ''),
      { what: `a message like ${pattern}`, timeout: 20_000 }, pattern.source).catch(async (error) => {
      throw new Error(`${error.message}\n${await visitor.page.eval(said)}`);
    });
    // One message on this subject.
    assert.equal(await visitor.page.eval(() => document.querySelectorAll('.notice[data-kind]').length), 1);
  };
  const taken = (pattern) => visitor.page.until((source) => new RegExp(source).test(document.querySelector('#files-note').textContent),
    { what: `a note like ${pattern}`, timeout: 20_000 }, pattern.source);

  it('are refused at once where they are broken, and say with which numbers', async () => {
    const page = await visitor.ready();
    const cut = packed(images(50)).slice(0, 60);
    const wrong = [
      [{ 'train-images-idx3-ubyte': [] }, /train-images-idx3-ubyte is empty: it has 0 bytes/],
      [{ 'train-images-idx3-ubyte': images(9, { bytes: 784 * 8 + 5 }) }, /is cut off: 9 images are 7,072 bytes, and it has 6,293/],
      [{ 't10k-labels-idx1-ubyte': labels(20, { bytes: 21 }) }, /is too long: 20 labels are 28 bytes, and it has 29/],
      [{ 'train-images-idx3-ubyte': head(3, 9).slice(0, 8) }, /is cut off: it has 8 bytes, and the head/],
      [{ 'train-images-idx3-ubyte': images(2, { side: 32 }) }, /32 by 32 pixels; this page.s models read 28 by 28/],
      [{ 'train-labels-idx1-ubyte': labels(4, { label: 11 }) }, /label 1 is 11; labels are digits/],
      [{ 'train-images-idx3-ubyte.gz': cut }, /train-images-idx3-ubyte.gz: the packed data is broken or cut off/],
      [{ 'digits.png': [137, 80, 78, 71] }, /digits.png is no IDX file.*begins with 89504e47/],
      [{ 'images.idx': images(3) }, /images.idx: are its 3 images to train on, or to test with/],
      [{ 'train-images': images(0) }, /train-images holds no images/],
      [{ 'train-images-a': images(3), 'train-images-b': images(3) }, /train-images-a and train-images-b are both train-images; the first/],
    ];
    for (const [files, pattern] of wrong) {
      await drop(files);
      await refusal(pattern);
    }
    await page.screenshot('refused-files');
    // The message is within the window, wherever the page is scrolled to.
    for (const at of [0, 400, 1e5]) {
      await page.eval((y) => scrollTo(0, y), at);
      await drop({ empty: [] });
      await refusal(/empty is empty/);
      const [top, bottom, height] = await page.eval(() => {
        const { top, bottom } = document.querySelector('.notice[data-kind="file"]').getBoundingClientRect();
        return [top, bottom, innerHeight];
      });
      assert.ok(top >= 0 && bottom <= height, `from ${top} to ${bottom} of ${height}, scrolled by ${at}`);
    }
    assert.equal(await page.eval(() => document.activeElement === document.body), true, 'the focus was taken');
    // A usable file removes it.
    await drop({ 'train-labels': labels(3) });
    await taken(/train-labels \(3 labels\)/);
    assert.equal(await visitor.words(), '');
  });

  it('wait for each other, and no longer than that is true', async () => {
    const page = await visitor.ready();
    await drop({ 'train-images': images(30), 'train-labels': packed(labels(30)) });
    await taken(/train-images \(30 images\).*Still needed: t10k-images-…, t10k-labels-…\./);
    // A pair that does not match: the newer file stays.
    await drop({ 'train-labels': labels(20) });
    await refusal(/train-images has 30 images, and train-labels 20 labels: they do not belong together/);
    await taken(/Taken: train-labels \(20 labels\)\. Still needed: train-images-…, t10k-images/);
    await drop({ 'train-images': images(20) });
    await taken(/train-images \(20 images\), train-labels/);
    assert.equal(await visitor.words(), '');
    // With other data, no file is waiting.
    await page.eval(() => { document.querySelector('#data-forget').click(); });
    await page.until(() => document.querySelector('#files-note').textContent === '', { what: 'no note' });
    assert.equal(await page.eval(() => document.querySelector('#data-forget').hidden), true);
    await drop({ 'train-images': images(20) });
    await taken(/Taken: train-images \(20 images\)/);
    await page.set('#data-select', 'auto');
    await page.until(() => document.querySelector('#files-note').textContent === '', { what: 'no note' });
    // All four, twice: existing ones are replaced.
    const four = { 'train-images': images(20), 'train-labels': labels(20), 't10k-images.gz': packed(images(10)), 't10k-labels': labels(10) };
    for (const count of [20, 25]) {
      await drop({ ...four, 'train-images': images(count), 'train-labels': labels(count) });
      await page.until((n) => document.querySelector('#data-source').textContent.includes(`${n} to train on, 10 to test with`), { what: 'the files as data' }, count);
    }
    assert.equal(await note(), '');
    await page.click('#step-once');
    await visitor.reaches(1);
    assert.equal(await visitor.words(), '');
  });

  it('that are folders, too large, or cannot be read are told apart', async () => {
    const page = await visitor.ready();
    await page.eval(() => {
      Object.defineProperty(File.prototype, 'size', { get() { return this.name === 'huge' ? 3e9 : 4; } });
      DataTransferItem.prototype.webkitGetAsEntry = function entry() { return { isDirectory: this.getAsFile().name === 'mnist' }; };
    });
    await drop({ mnist: [1], huge: [1] });
    await refusal(/mnist is a folder: drop the files that are in it\. huge has 3 GB; MNIST’s files have 100 MB at most\./);
    await page.upload('#weights-load', new URL('page.test.mjs', import.meta.url).pathname);
    await page.until(() => /page\.test\.mjs/.test(document.querySelector('.notice[data-kind="weights"]')?.textContent), { what: 'a word on the weights' });
  });
});
