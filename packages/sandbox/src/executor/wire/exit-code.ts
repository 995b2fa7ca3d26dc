// The exit code with which the executor reports to its worker that it cannot use the image; EX_CONFIG in sysexits.h.

export const badImageExitCode = 78;
