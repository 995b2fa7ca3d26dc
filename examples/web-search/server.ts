// A web-search tool in one file: searches a file of documents, one JSON object with title, url and text per line, by the words that a
// query shares with them. `node server.ts documents.jsonl 8080`; docs/tools.md has the contract.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

interface SearchDocument {
  readonly title: string;
  readonly url: string;
  readonly text: string;
}

const [file = '', port = '0'] = process.argv.slice(2);
const pages: SearchDocument[] = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));
const wordsOf = (text: string) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
const indexed = pages.map((page) => ({ page, words: wordsOf(`${page.title} ${page.text}`) }));

function search(query: string, most: number): string {
  const wanted = [...wordsOf(query)];
  const ranked = indexed
    .map(({ page, words }) => ({ page, score: wanted.filter((word) => words.has(word)).length }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score);
  const shown = ranked.slice(0, most).map(({ page }, at) => `${at + 1}. ${page.title}\n${page.url}\n${page.text.slice(0, 500)}`);
  return shown.length > 0 ? shown.join('\n\n') : 'No results.';
}

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const { query = '', max_results = 3 } = JSON.parse(body || '{}');
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(search(String(query), Number(max_results)));
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as { port: number }).port}/search`));
