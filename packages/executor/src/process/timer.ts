// Timers for times that a caller chose, which may be longer than Node.js allows.

const longestTimerMs = 2 ** 31 - 1;

export function startTimer(ms: number, act: () => void): NodeJS.Timeout {
  return setTimeout(act, Math.min(ms, longestTimerMs));
}
