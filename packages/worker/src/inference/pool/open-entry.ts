// Opens a backend for the pool: its connections, its adapter over them, and the watch that proves which server answers. Another server at the
// same address gets new connections: one that is kept open could still lead to the old one.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { type Backend, type BackendProbe, type BackendRecord, type HttpBackendOptions, logprobsOf, openBackend } from '@millrace/engines';
import { definedOf, messageOf } from '@millrace/protocol';
import { findChange, joinProbe, type Placements, probeTimeoutMs } from '@millrace/store';
import { Agent } from 'undici';
import { openAsk } from '../identity/ask-server.ts';
import { IdentityWatch } from '../identity/identity-watch.ts';
import { readInstance } from '../identity/instance.ts';
import { CallProgress } from './call-progress.ts';
import type { PoolEntry } from './lease.ts';
import { within } from './probe.ts';
import { isSameServer } from './record-view.ts';
import { probeServer } from './server-probe.ts';
import type { TokenizerSample } from './tokenizer-check.ts';

export interface EntryDeps {
  readonly calls: Omit<HttpBackendOptions, 'dispatcher' | 'onProbe' | 'onDoubt'>;
  readonly placements?: Placements | undefined;
  readonly tokenizer?: TokenizerSample | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the entry's own questions to the server. */
  readonly signal: AbortSignal;
  isPaused(): boolean;
}

/** An entry that follows its record. Disposing it ends its calls. */
export interface OpenEntry extends PoolEntry, AsyncDisposable {
  update(record: BackendRecord): void;
  /** Resolves when the calls that run have ended. */
  close(): Promise<void>;
}

/** Over an adapter that the caller opens: nothing is known of its connections, and its server is not watched. */
export function openPlainEntry(first: BackendRecord, open: (record: BackendRecord) => Backend, clock: Clock): OpenEntry {
  const entry: OpenEntry = {
    ...{ id: first.id, record: first, backend: open(first), progress: new CallProgress(clock), leases: 0, ranks: [], hasLeft: false },
    update(record) {
      if (!isSameServer(entry.record, record)) entry.backend = open(record);
      entry.record = record;
    },
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  return entry;
}

export function openEntry(first: BackendRecord, deps: EntryDeps): OpenEntry {
  const { placements, log } = deps;
  const { id } = first;
  const agents = new Set<Agent>();
  const logFailure = (error: unknown) => log.error('backend-health-failed', { backend: id, error: messageOf(error) });
  const onProbe = (probe: BackendProbe) => void placements?.noteProbe(id, probe).catch(logFailure);
  let agent = new Agent();
  /** Its last calls end first. It stays in the set until then. */
  const close = async () => {
    const old = agent;
    await old.close();
    agents.delete(old);
  };
  const connect = () => {
    agent = new Agent();
    agents.add(agent);
    agent.on('connect', () => watch.doubt());
  };
  const open = (record: BackendRecord): Backend =>
    openBackend(record, { ...deps.calls, dispatcher: agent, onProbe, onDoubt: () => watch.doubt() });
  const watch: IdentityWatch = new IdentityWatch({
    ...openQuestions(() => entry.record, deps),
    known: first.probe,
    note: async (found) => (placements ? await placements.noteProbe(id, found) : joinAlone(entry.record, found)) ?? found,
    onKnown: (probe, isAnother) => {
      if (isAnother) reconnect();
      use({ ...entry.record, probe }, isAnother);
    },
    policyVersion: () => entry.record.policyVersion,
  });
  const reconnect = () => {
    close().catch(logFailure);
    connect();
  };
  const use = (record: BackendRecord, isAnother: boolean) => {
    if (isAnother || !isSameServer(entry.record, record)) entry.backend = open(record);
    entry.record = record;
  };
  connect();
  const entry: OpenEntry = {
    ...{ id, record: first, backend: open(first), watch, progress: new CallProgress(deps.clock), leases: 0, ranks: [], hasLeft: false },
    update(record) {
      if (record.policyVersion !== entry.record.policyVersion) watch.doubt();
      const isAnother = watch.adopt(record.probe);
      if (isAnother) reconnect();
      use(record, isAnother);
    },
    close,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(Array.from(agents, (one) => one.destroy()));
    },
  };
  return entry;
}

function openQuestions(record: () => BackendRecord, { tokenizer, clock, log, signal, isPaused }: EntryDeps) {
  return {
    readInstance: async () => {
      const dispatcher = new Agent();
      try {
        const limit = { signal, clock, timeoutMs: probeTimeoutMs };
        return await within(limit, (inTime) => readInstance(record(), openAsk(record(), { signal: inTime, dispatcher })));
      } finally {
        await dispatcher.destroy();
      }
    },
    probe: async () => {
      const known = record().probe;
      const options = { clock, signal, tokenizer, isPaused: isPaused(), timeoutMs: probeTimeoutMs };
      const isBrief = known?.atMs !== undefined && known.instance === undefined && !known.isSeveral;
      const brief = isBrief ? await probeServer(record(), { ...options, isBrief }) : undefined;
      // The rest is asked only of another server: a trainer's own may take an empty request for an error.
      return known && brief && !findChange(known, brief) ? { ...restOf(known), ...brief } : await probeServer(record(), options);
    },
    lacksMode: (probe: BackendProbe) => logprobsOf({ ...record(), probe }) === 'unknown' && !isPaused(),
    ...{ signal, clock, log },
  };
}

/** What a brief probe leaves out. */
function restOf({ route, routeReason, tokenizer, tokenizerReason }: BackendProbe): BackendProbe {
  return definedOf({ route, routeReason, tokenizer, tokenizerReason });
}

/** A pool without a store decides for itself. */
function joinAlone({ probe: known, policyVersion }: BackendRecord, found: BackendProbe): BackendProbe {
  return { ...(found.atMs === undefined ? { ...known, ...found } : joinProbe(known, found).probe), provenVersion: policyVersion };
}
