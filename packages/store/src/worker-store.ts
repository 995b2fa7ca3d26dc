// What a worker and the process that starts workers use of the store. They have it directly, or from any server over HTTP.

import type { Store } from './store.ts';

export type WorkerStore = Pick<
  Store,
  | 'registerWorker'
  | 'renew'
  | 'claim'
  | 'move'
  | 'endIfLost'
  | 'finish'
  | 'retry'
  | 'release'
  | 'dropWorker'
  | 'expire'
  | 'workers'
  | 'get'
  | 'backends'
  | 'backendLoads'
  | 'oldestOn'
  | 'place'
  | 'breakBackend'
  | 'recoverBackend'
  | 'noteProbe'
  | 'takeProbe'
  | 'noteTraffic'
  | 'policy'
  | 'reportGate'
  | 'appendEvents'
  | 'events'
  | 'lastEventId'
  | 'onHint'
  | 'appendTurns'
  | 'loggedTurns'
> &
  AsyncDisposable;
