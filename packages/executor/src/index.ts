// What the worker shares with the executor: the frame codec, and reading and signalling processes. The rest runs only inside the sandbox.

export { type ProcessStat, readProcess, sendSignal } from './process/processes.ts';
export { encodeFrame, type Frame, type FrameLimits, openFrameReader } from './wire/frames.ts';
