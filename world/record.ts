// `node world/record.ts [file …]`: sends a fixed list of requests to real engines and writes what they replied, as JSON, to
// packages/testkit/src/recordings. With names of files it records only those.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RecordingFile, recordingsFolder } from '@millrace/testkit';
import { readVersion, recordCases, sessions } from './recordings/sessions.ts';

const wanted = process.argv.slice(2);

for (const session of sessions) {
  const files = Object.entries(session.files).filter(([file]) => wanted.length === 0 || wanted.includes(`${session.engine}/${file}`));
  if (files.length === 0) continue;
  console.log(`${session.name}: starting`);
  await using engine = await session.open();
  const version = await readVersion(session, engine);
  const folder = recordingsFolder(session.engine, version);
  mkdirSync(folder, { recursive: true });
  for (const [file, cases] of files) {
    const recordings = await recordCases(engine, cases);
    const content: RecordingFile = { engine: session.engine, version, started: session.started, recordings };
    writeFileSync(join(folder, `${file}.json`), render(content));
    console.log(`${session.name}: ${recordings.length} recordings in ${file}.json`);
  }
}

/** Lists of numbers on one line. */
function render(content: RecordingFile): string {
  const lists = /\[\s+(-?[\d.e+-]+(?:,\s+-?[\d.e+-]+)*)\s+\]/g;
  return `${JSON.stringify(content, undefined, 1).replace(lists, (_, numbers: string) => `[${numbers.replace(/\s+/g, ' ')}]`)}\n`;
}
