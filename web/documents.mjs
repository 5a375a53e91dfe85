// The project's documentation as HTML next to the demo: README.md, the pages that it links to, and docs/.

import { Marked } from 'marked';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';

const PAGES = ['README.md', 'FEATURES.md', 'CONTRIBUTING.md'];
const POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'";

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);

/** Heading ids as on GitHub; the pages link to each other's headings with them. */
const slug = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-');

/** `docs/web.md` becomes `web.html`; README.md is the first page. */
const address = (file) => (file === 'README.md' ? 'index.html' : basename(file).toLowerCase().replace(/\.md$/, '.html'));

/** The target of a link in `file`: within the pages, external, or undefined for a file that is not shown here. */
function target(href, file, files) {
  if (/^(https?:|#|mailto:)/.test(href)) return href;
  const [name, hash = ''] = href.split('#');
  const wanted = posix.normalize(posix.join(posix.dirname(file), name));
  return files.includes(wanted) ? `${address(wanted)}${hash && `#${hash}`}` : undefined;
}

function rendered(text, file, files) {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: words }) {
        return `<h${depth} id="${slug(words.replace(/`/g, ''))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const to = target(href, file, files);
        return to === undefined ? inner : `<a href="${escaped(to)}">${inner}</a>`;
      },
      code({ text: code }) {
        // A wide block scrolls separately, also with the keyboard.
        return `<pre tabindex="0"><code>${escaped(code)}</code></pre>\n`;
      },
      table(token) {
        const row = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
        return `<div class="table" tabindex="0"><table><thead>${row(token.header, 'th scope="col"').replaceAll('</th scope="col">', '</th>')}</thead>`
          + `<tbody>${token.rows.map((cells) => row(cells, 'td')).join('\n')}</tbody></table></div>\n`;
      },
    },
  });
  // Comments are for programs that write parts of these pages.
  return marked.parse(text.replace(/<!--.*?-->/gs, ''));
}

/**
 * Writes the pages of the project at `root` into the folder `into`, next to the style sheet in its parent. Returns their names.
 */
export async function documents(root, into) {
  const docs = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md')).sort();
  const files = [...PAGES, ...docs.map((name) => `docs/${name}`)].filter((name) => existsSync(join(root, name)));
  await mkdir(into, { recursive: true });
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), 'utf8')));
  const titles = texts.map((text, i) => /^# (.*)$/m.exec(text)?.[1] ?? files[i]);
  const list = (current) => files.map((file, i) => {
    const here = file === current ? ' aria-current="page"' : '';
    return `<li><a href="${address(file)}"${here}>${escaped(titles[i])}</a></li>`;
  }).join('\n');
  await Promise.all(files.map((file, i) => writeFile(join(into, address(file)), `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escaped(titles[i])}${titles[i] === 'wgrad' ? '' : ' – wgrad'}</title>
<link rel="icon" href="../icon.svg">
<link rel="stylesheet" href="../article.css">
</head>
<body>
<header class="top"><p class="home"><a href="../">wgrad</a></p>
<nav aria-label="Site"><a href="../">Demo</a> <a href="../examples/index.html">Examples</a> <a href="index.html">Docs</a></nav></header>
<div class="sides">
<nav class="pages" aria-label="Docs"><ul>
${list(file)}
</ul></nav>
<main>
${rendered(texts[i], file, files)}</main>
</div>
</body>
</html>
`)));
  return files.map(address);
}

