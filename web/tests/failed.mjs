// A reporter for `node --test`: the files in which a test failed, one a line.

export default async function* failed(events) {
  const files = new Set();
  // A group that a helper made is said to be in the helper's file.
  for await (const { type, data } of events) if (type === 'test:fail' && data.file?.endsWith('.test.mjs')) files.add(data.file);
  for (const file of files) yield `${file}\n`;
}
