// Workers that have servers in place of a store: the contract of the store holds for all that they call, over HTTP, on both engines.

import { after, describe } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openRemoteStore, openStore, type Store, type WorkerStore } from '@millrace/store';
import { defineWorkerStoreSuite, makeTempFolder, type OpenBed, PostgresServer, skipPostgres } from '@millrace/testkit';
import { openFloor } from '../../packages/server/test/http/floor.ts';
import { openPostgresBed } from '../../packages/store/test/postgres/bed.ts';

const own = [
  ...['registerWorker', 'renew', 'claim', 'move', 'endIfLost', 'finish', 'retry', 'release', 'dropWorker', 'workers', 'get', 'backends'],
  ...[
    'backendLoads',
    'oldestOn',
    'place',
    'breakBackend',
    'recoverBackend',
    'noteProbe',
    'takeProbe',
    'noteTraffic',
    'policy',
    'reportGate',
  ],
  ...['appendEvents', 'appendTurns', 'loggedTurns'],
] as const;

/** The calls of workers go to a server, all others to the store. */
function join(store: Store, remote: WorkerStore): Store {
  const calls = new Map<PropertyKey, unknown>(own.map((name) => [name, Reflect.get(remote, name)]));
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = calls.get(name) ?? Reflect.get(target, name, target);
      return typeof value === 'function' && !calls.has(name) ? value.bind(target) : value;
    },
  });
}

function throughServers(openBed: OpenBed): OpenBed {
  return async (clock) => {
    const stack = new AsyncDisposableStack();
    const bed = stack.use(await openBed(clock));
    const connect = async (shared: Store) => {
      const floor = stack.use(await openFloor({ shared }));
      const remote = stack.use(openRemoteStore({ servers: [await floor.listen()], log: silentLog }));
      return join(shared, remote);
    };
    const store = await connect(bed.store);
    return { store, another: async () => await connect(await bed.another()), [Symbol.asyncDispose]: () => stack.disposeAsync() };
  };
}

defineWorkerStoreSuite(
  'a SQLite store through servers',
  throughServers(async (clock) => {
    const stack = new AsyncDisposableStack();
    const folder = stack.use(await makeTempFolder('millrace-remote'));
    const another = async () => stack.use(await openStore(`${folder.path}/store.db`, { clock, log: silentLog }));
    return { store: await another(), another, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }),
);

describe('with a PostgreSQL server', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());
  defineWorkerStoreSuite(
    'a PostgreSQL store through servers',
    throughServers(async (clock) => {
      opening ??= PostgresServer.open();
      return await openPostgresBed(await opening, clock);
    }),
  );
});
