// Dockerfiles: what is parsed, what is refused with file and line, and real builds under Apptainer.

import assert from 'node:assert/strict';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { makeTempFolder, makeTinyImage, type TempFolder, writeDockerArchive } from '@millrace/testkit/plain';
import { openApptainerDriver } from '../../src/apptainer/apptainer.ts';
import { probeApptainer } from '../../src/apptainer/probe.ts';
import { parseDockerfile, readJsonForm } from '../../src/images/dockerfile/dockerfile.ts';
import { digestFolder } from '../../src/images/dockerfile/dockerfile-key.ts';
import { resolveInside } from '../../src/images/dockerfile/inside-root.ts';
import { matchPath, parseIgnore } from '../../src/images/dockerfile/match-path.ts';
import { planStages } from '../../src/images/dockerfile/stages.ts';
import { readPairs, splitWords } from '../../src/images/dockerfile/words.ts';
import { ImageCache } from '../../src/images/image-cache.ts';
import { replaceName, toBaseName } from '../../src/images/image-source.ts';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

test('continued lines, comments, flags and here-documents are read, with the line where each instruction starts', () => {
  const text =
    '# syntax=x\n\nFROM a AS b\nRUN one \\\n  # a comment\n\n  two\nCOPY --chmod=755 --from=b x y\nRUN <<-EOF\n\tline $A\n\tEOF\ncmd ["a"]';
  const found = parseDockerfile(text, 'D').map(({ name, line, text: rest, documents }) => [name, line, rest, documents.length]);
  assert.deepEqual(found, [
    ['FROM', 3, 'a AS b', 0],
    ['RUN', 4, 'one   two', 0],
    ['COPY', 8, 'x y', 0],
    ['RUN', 9, '<<-EOF', 1],
    ['CMD', 12, '["a"]', 0],
  ]);
  assert.deepEqual(readJsonForm('["a", "b c"]'), ['a', 'b c']);
  assert.equal(readJsonForm('[ -f x ] && y'), undefined);
});

test('what cannot be built is refused with file and line', () => {
  const cases: [string, RegExp][] = [
    ['FROM a\nONBUILD RUN x', /D:2: ONBUILD is not supported/],
    ['FROM a\n\nFETCH x', /D:3: unknown instruction FETCH/],
    ['FROM a\nCOPY --parents a b', /D:2: COPY --parents/],
    ['FROM a\nRUN --mount=type=secret,id=x true', /D:2: RUN --mount=type=secret/],
    ['FROM a\nRUN --network=none true', /D:2: RUN --network=none/],
    ['RUN x', /D:1: a Dockerfile starts with FROM/],
    ['FROM a\nWORKDIR', /D:2: WORKDIR needs an argument/],
  ];
  for (const [text, expected] of cases) assert.throws(() => parseDockerfile(text, 'D'), expected);
  assert.throws(() => planStages(parseDockerfile('ARG A\nFROM $A', 'D'), 'D'), /D:2: FROM \$A names no image/);
});

test('words, variables and pairs are read as Docker reads them', () => {
  const variables = { A: 'x y', EMPTY: '' };
  assert.deepEqual(splitWords(`$A "\${A}z" '$A' \\$A \${B:-b} \${EMPTY:-e} \${EMPTY-n} \${A:+set}`, variables), [
    'x y',
    'x yz',
    '$A',
    '$A',
    'b',
    'e',
    '',
    'set',
  ]);
  assert.deepEqual(readPairs('P="1 2" Q=$A R=\\ s', variables), [
    ['P', '1 2'],
    ['Q', 'x y'],
    ['R', ' s'],
  ]);
  assert.deepEqual(readPairs('OLD the rest', variables), [['OLD', 'the rest']]);
});

test('only the stages that the last one needs are built', () => {
  const text = 'FROM a AS one\nFROM a AS two\nRUN x\nFROM one\nCOPY --from=2 a b\nFROM b AS Four\nCOPY --from=one x y';
  const { stages } = planStages(parseDockerfile(text, 'D'), 'D');
  assert.deepEqual(
    stages.map(({ index, name }) => [index, name]),
    [
      [0, 'one'],
      [3, 'four'],
    ],
  );
});

test('patterns and .dockerignore follow the rules of Docker', () => {
  assert.deepEqual(
    ['a.txt', 'b/a.txt'].map((path) => matchPath('*.txt', path)),
    [true, false],
  );
  const ignores = parseIgnore('# x\n*.log\n**/tmp\n!keep.log\n/build/\n');
  const paths = ['a.log', 'keep.log', 'x/a.log', 'x/y/tmp', 'tmp/z', 'build/a', 'x/build'];
  assert.deepEqual(paths.map(ignores), [true, false, false, true, true, true, false]);
});

test('names of images are replaced by the longest that fits, and paths are relative to the Dockerfile', () => {
  const names = { 'python:*': 'docker://mirror:5000/python:*', 'python:3.12': '/images/p.sif', '*': 'docker://all/*' };
  assert.equal(replaceName('docker://python:3.12', names), '/images/p.sif');
  assert.equal(replaceName('docker://python:3.13', names), 'docker://mirror:5000/python:3.13');
  assert.equal(replaceName('docker://debian', names), 'docker://all/debian');
  assert.equal(toBaseName('../base.sif', '/t/e/Dockerfile'), '/t/base.sif');
  assert.equal(toBaseName('debian:12', '/t/e/Dockerfile'), 'docker://debian:12');
});

test('a context of many files has one digest, which changes with each file, and Node has nothing to warn of', async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  await using folder = await makeTempFolder('context');
  for (let n = 0; n < 30; n += 1) await writeFile(join(folder.path, `${n}`), `${n}`);
  const first = await digestFolder(folder.path);
  assert.equal(await digestFolder(folder.path), first);
  await writeFile(join(folder.path, '29'), '30');
  assert.notEqual(await digestFolder(folder.path), first);
  await new Promise(setImmediate);
  assert.deepEqual(warnings, []);
});

test('no link of an image leads out of its folder', async () => {
  await using temp = await makeTempFolder('df');
  const root = join(temp.path, 'root');
  await mkdir(join(root, 'usr/lib'), { recursive: true });
  await symlink('/etc', join(root, 'absolute'));
  await symlink('../../../../etc', join(root, 'usr/relative'));
  await symlink('usr/lib', join(root, 'lib'));
  await symlink('loop', join(root, 'loop'));
  assert.equal(await resolveInside(root, '/absolute/passwd'), join(root, 'etc/passwd'));
  assert.equal(await resolveInside(root, '/usr/relative/x'), join(root, 'etc/x'));
  assert.equal(await resolveInside(root, 'lib/../lib/y'), join(root, 'usr/lib/y'));
  assert.equal(await resolveInside(root, '../../x'), join(root, 'x'));
  await assert.rejects(resolveInside(root, '/loop/x'), /more than 40 links/);
});

describe('a build from a Dockerfile', { skip, timeout: 300_000 }, () => {
  let temp: TempFolder;
  let cache: ImageCache;
  before(async () => {
    temp = await makeTempFolder('df');
    await makeTinyImage(join(temp.path, 'tiny'));
    await writeDockerArchive(join(temp.path, 'tiny.tar'), join(temp.path, 'tiny'), ['PATH=/opt/own:/usr/bin', 'FLAVOUR=ripe plum']);
    const names = { 'tiny:1': join(temp.path, 'tiny'), 'tiny:archive': `docker-archive:${temp.path}/tiny.tar` };
    cache = new ImageCache({ folder: join(temp.path, 'images'), maxBytes: 2 ** 32, names });
  });
  after(() => temp[Symbol.asyncDispose]());

  async function write(name: string, files: Readonly<Record<string, string>>): Promise<string> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(temp.path, name, path)), { recursive: true });
      await writeFile(join(temp.path, name, path), content);
    }
    return join(temp.path, name, 'Dockerfile');
  }

  test('runs, copies and unpacks, keeps variables of its base, and runs as a sandbox in which everything can be written', async () => {
    const lines = [
      'ARG TAG=archive',
      'FROM tiny:1 AS made',
      'ARG TAG',
      'SHELL ["/bin/bash", "-c"]',
      // An ordinary user without a range of users cannot give files away.
      'RUN mkdir -p /out/deep && echo "made $TAG" > /out/deep/file && { chown 33:33 /out/deep/file || true; } && echo kept > /tmp/kept',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the Dockerfile
      'FROM tiny:${TAG}',
      'ENV MORE="$FLAVOUR and more" QUOTE="it\'s"',
      'WORKDIR /app',
      'WORKDIR sub',
      'COPY --from=made /out /tmp/kept ./',
      'COPY *.txt docs/',
      'COPY --chmod=700 one.txt /lib/renamed',
      'COPY <<EOF /app/doc',
      'flavour $FLAVOUR',
      'EOF',
      'RUN echo "$MORE" > env && pwd >> env',
      'EXPOSE 80',
      'USER www-data',
      'ENTRYPOINT ["bash"]',
    ];
    const path = await write('all', {
      Dockerfile: lines.join('\n'),
      'one.txt': '1',
      'two.txt': '2',
      'no.txt': 'x',
      '.dockerignore': 'no.*\n',
    });
    const driver = await openApptainerDriver({ runDir: join(temp.path, 'run'), log: silentLog, images: cache });
    await using sandbox = await driver.open({ image: path });
    const shell = async (command: string) => (await sandbox.runShell(command, { timeoutMs: 30_000 })).output;
    assert.equal(
      await shell('cat /app/sub/deep/file /app/sub/env /app/doc'),
      'made archive\nripe plum and more\n/app/sub\nflavour ripe plum\n',
    );
    assert.equal(
      await shell('ls -1 /app/sub /app/sub/docs /usr/lib/renamed'),
      '/usr/lib/renamed\n\n/app/sub:\ndeep\ndocs\nenv\nkept\n\n/app/sub/docs:\none.txt\ntwo.txt\n',
    );
    assert.equal(await shell('echo "$MORE, $QUOTE, $PATH"'), "ripe plum and more, it's, /opt/own:/usr/bin\n");
    assert.equal(await shell('echo x >> /app/sub/deep/file && rm -r /app && touch /usr/bin/new && echo written'), 'written\n');
  });

  test('equal folders share one image, a changed file makes another, and a failed step names its line', async () => {
    const files = { Dockerfile: 'FROM tiny:1\nCOPY data /data\nWORKDIR /workspace\nCOPY data .\n', data: 'one' };
    await using first = await cache.open(await write('a', files));
    await using second = await cache.open(await write('b', files));
    await using other = await cache.open(await write('c', { ...files, data: 'two' }));
    assert.equal(first.path, second.path);
    assert.notEqual(first.path, other.path);
    assert.equal(await readFile(join(other.path, 'data'), 'utf8'), 'two');
    const failing = await write('failing', { Dockerfile: 'FROM tiny:1\n\nRUN echo because >&2; exit 3\n' });
    await assert.rejects(cache.open(failing), /failing\/Dockerfile:3: RUN .* exit code 3: because/);
    await assert.rejects(
      cache.open(await write('missing', { Dockerfile: 'FROM tiny:1\nCOPY nothing /\n' })),
      /missing\/Dockerfile:2: COPY .* no nothing to copy/,
    );
    await assert.rejects(
      cache.open(await write('url', { Dockerfile: 'FROM tiny:1\nADD https://example.com/x /\n' })),
      /url\/Dockerfile:2: .*download it with RUN/,
    );
    await assert.rejects(
      cache.open(await write('unknown', { Dockerfile: 'FROM ./no.sif\n' })),
      /unknown\/Dockerfile:1: FROM .*there is no image/,
    );
  });
});
