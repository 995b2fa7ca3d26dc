// A program with three pipes, as the worker asked for it.

#ifndef MILLRACE_PIPES_H
#define MILLRACE_PIPES_H

#include "../base/loop.h"
#include "../wire/link.h"

struct piped {
  pid_t pid;
  int in;
  int out;
  int err;
};

/**
 * Starts the program of `params` (argv, cwd, env) in its own session, with a pipe for each of its standard files. Returns 0; what the
 * kernel said; or -1 if the parameters are invalid. `problem` is then the message.
 */
int start_piped(const struct request *request, struct piped *piped, struct bytes *problem);

/** Reads once. False at the end of the stream; a chunk without bytes if there is nothing now. */
bool read_chunk(int fd, struct view *chunk);

#endif
