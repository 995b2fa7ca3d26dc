// Where the parts that are started or read by path are. A source checkout runs TypeScript files in their folders; the published package
// holds a build, in which all parts lie in one folder. This is the only module that knows the difference.

const isBuilt = import.meta.url.endsWith('.js');

interface Parts {
  /** The entry of a worker process. */
  readonly worker: URL;
  /** The entry of a thread of the SQLite store. */
  readonly storeThread: URL;
  /** The entry of a thread that grades the texts of agents. */
  readonly graderThread: URL;
  /** The entry of a process that plays reward hackers for `millrace task attack`. */
  readonly attackPlayer: URL;
  /** What a scenario imports as `millrace/scenario`. */
  readonly scenario: URL;
  /** The executor's program for this machine. */
  readonly executor: URL;
  /** The program that runs an agent's Python cells; it lies next to the executor. */
  readonly pythonHost: URL;
  /** The program that runs a scenario in Python; it lies in its package. */
  readonly pythonScenario: URL;
  /** The program that runs a Python environment in a sandbox. */
  readonly gymHost: URL;
  /** The folder of the dashboard's files. */
  readonly dashboard: URL;
}

export function findParts(): Parts {
  if (isBuilt) {
    return {
      worker: new URL('./worker-main.js', import.meta.url),
      storeThread: new URL('./store-thread.js', import.meta.url),
      graderThread: new URL('./grader-thread.js', import.meta.url),
      attackPlayer: new URL('./attack-player.js', import.meta.url),
      scenario: new URL('./scenario.js', import.meta.url),
      executor: new URL(`./executor/executor-${process.arch}`, import.meta.url),
      pythonHost: new URL('./executor/ipython_host.py', import.meta.url),
      pythonScenario: new URL('./python/millrace/scenario/__main__.py', import.meta.url),
      gymHost: new URL('./gym_host.py', import.meta.url),
      dashboard: new URL('./dashboard/', import.meta.url),
    };
  }
  return {
    worker: new URL('../../server/src/worker-main.ts', import.meta.url),
    storeThread: new URL('../../store/src/sqlite/thread.ts', import.meta.url),
    graderThread: new URL('../../scenarios/src/load/grader-thread.ts', import.meta.url),
    attackPlayer: new URL('../../cli/src/attack/player-main.ts', import.meta.url),
    scenario: new URL('../../scenarios/src/public.ts', import.meta.url),
    executor: new URL(`../../sandbox/dist/executor-${process.arch}`, import.meta.url),
    pythonHost: new URL('../../sandbox/dist/ipython_host.py', import.meta.url),
    pythonScenario: new URL('../../client-python/src/millrace/scenario/__main__.py', import.meta.url),
    gymHost: new URL('../../scenarios/python/gym_host.py', import.meta.url),
    dashboard: new URL('../../dashboard/dist/', import.meta.url),
  };
}

/** Whether code at this address is Millrace's own. A user's scenario and a library are not. */
export function isOwnCode(url: string): boolean {
  const folder = new URL(isBuilt ? '.' : '../../', import.meta.url).href;
  return url.startsWith(folder) && (isBuilt || /^[a-z]+\/src\//.test(url.slice(folder.length)));
}
