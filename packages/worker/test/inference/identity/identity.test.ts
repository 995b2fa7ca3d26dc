// Whether a server is the one that is known, fact by fact.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BackendProbe, logprobsOf } from '@millrace/engines';
import { findChange, isKnownInstance, joinProbe, toSeveral } from '@millrace/store';

const known: BackendProbe = {
  instance: '1',
  engine: 'vllm',
  version: '0.27.1',
  model: 'm',
  root: '/m',
  contextTokens: 2048,
  logprobsMode: 'processed',
  tokenizer: 'same',
  generation: 3,
  atMs: 1,
};

test('every fact that differs is a change; one that either side does not know is none', () => {
  const others: readonly BackendProbe[] = [
    { instance: '2' },
    { engine: 'sglang' },
    { version: '0.32.0' },
    { model: 'n' },
    { root: '/n' },
    { contextTokens: 4096 },
    { logprobsMode: 'raw' },
    { tokenizer: 'different' },
  ];
  for (const other of others) {
    const [[name = '', value] = []] = Object.entries(other);
    assert.deepEqual(findChange(known, { ...known, ...other }), { from: { [name]: Reflect.get(known, name) }, to: { [name]: value } });
  }
  assert.equal(findChange(known, { ...known, logprobsMode: 'unknown', tokenizer: 'unchecked' }), undefined);
  assert.equal(findChange({}, known), undefined);
});

test('of another server nothing is kept but the count', () => {
  const found: BackendProbe = { instance: '2', engine: 'vllm', version: '0.32.0', atMs: 9 };
  const { probe, change } = joinProbe(known, found);
  const { generation: _, atMs: __, ...facts } = known;
  assert.deepEqual(probe, { ...found, generation: 4, others: [facts], isReplaced: true });
  assert.deepEqual(change, { from: { instance: '1', version: '0.27.1' }, to: { instance: '2', version: '0.32.0' } });
});

test('what an operator declared of a vLLM is not assumed of the one that took its place', () => {
  const record = { dialect: 'vllm', logprobsMode: 'processed' } as const;
  const { logprobsMode: _, ...joined } = known;
  assert.equal(logprobsOf({ ...record, probe: joined }), 'processed');
  const { probe } = joinProbe(joined, { ...joined, instance: '2' });
  assert.equal(logprobsOf({ ...record, probe }), 'unknown');
  assert.equal(logprobsOf({ ...record, probe: joinProbe(probe, { ...joined, instance: '2', logprobsMode: 'raw' }).probe }), 'raw');
});

test('a probe that did not see the mode keeps it only for the same start of the server', () => {
  const { logprobsMode: _, ...unseen } = known;
  assert.equal(joinProbe(known, unseen).probe.logprobsMode, 'processed');
  const { instance: __, ...unnamed } = unseen;
  assert.equal(joinProbe({ ...known }, unnamed).probe.logprobsMode, undefined);
});

test('a server that answers again after another one is one of several, which share only what is equal', () => {
  const second: BackendProbe = { ...known, instance: '2', logprobsMode: 'raw' };
  const changed = joinProbe(known, second);
  assert.equal(changed.probe.isSeveral, undefined);
  const back = joinProbe(changed.probe, known);
  assert.equal(back.probe.isSeveral, true);
  assert.ok(back.change);
  assert.equal(back.probe.logprobsMode, undefined);
  assert.equal(back.probe.model, 'm');
  const again = joinProbe(back.probe, second);
  assert.equal(again.change, undefined);
  assert.equal(again.probe.generation, back.probe.generation);
  for (const one of ['1', '2']) assert.ok(isKnownInstance(again.probe, one));
  assert.ok(!isKnownInstance(again.probe, '3'));
  const third = joinProbe(again.probe, { ...known, instance: '3', version: '0.32.0' });
  assert.ok(third.change);
  assert.equal(third.probe.version, undefined);
  assert.equal(third.probe.generation, (back.probe.generation ?? 0) + 1);
});

test('several servers that do not differ to us stay several, with what a router says of all', () => {
  const found: BackendProbe = { contextTokens: 4096, isSeveral: true };
  const first = joinProbe(undefined, found).probe;
  const again = joinProbe(first, found);
  assert.equal(again.change, undefined);
  assert.deepEqual([again.probe.isSeveral, again.probe.contextTokens, again.probe.generation], [true, 4096, 1]);
});

test('a tokenizer that one of several servers has differently makes the address unusable', () => {
  const servers = [
    { instance: '1', tokenizer: 'same' },
    { instance: '2', tokenizer: 'different' },
  ] as const;
  assert.equal(toSeveral({}, servers).tokenizer, 'different');
});
