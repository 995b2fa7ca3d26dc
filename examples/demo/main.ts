// `npm run demo`, its first half: `millrace demo` from this clone. Exits with 1 if anything is wrong.

import { runMillrace } from 'millrace';

const { stdin, stdout, stderr, env } = process;
const onInterrupt = (listener: () => void) => {
  process.on('SIGINT', listener);
  return () => process.off('SIGINT', listener);
};
process.exitCode = await runMillrace(['demo'], { stdin, stdout, stderr, env, onInterrupt });
