// A reporter for `node --test`: prints the files in which a test failed, one per line.

export default async function* failed(events) {
  const files = new Set();
  // A group made by a helper is reported with the helper's file.
  for await (const { type, data } of events) if (type === 'test:fail' && data.file?.endsWith('.test.mjs')) files.add(data.file);
  for (const file of files) yield `${file}\n`;
}
