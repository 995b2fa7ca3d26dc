// What the worker knows of the executor, whose own program is in native/: the frame codec, tar headers, the rule for links, an exit code,
// and reading and signalling processes.

export { type ProcessStat, readProcess, sendSignal } from './process/processes.ts';
export { badImageExitCode } from './wire/exit-code.ts';
export { encodeFrame, type Frame, type FrameLimits, openFrameReader } from './wire/frames.ts';
export { staysInside } from './wire/inner-link.ts';
export { renderTarComment, renderTarHeader, renderTarPadding, type TarHeader, tarBlockBytes } from './wire/tar-header.ts';
