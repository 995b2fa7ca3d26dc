// The spawner of a worker: a small process that starts the holders of sandboxes for it. Copying the memory of a worker for each start costs
// milliseconds in which the worker does nothing else; copying this process costs a tenth of one.

#ifndef MILLRACE_SPAWN_H
#define MILLRACE_SPAWN_H

/**
 * Takes messages from its standard input and answers on its standard output until the input ends, which ends it, and with it every holder
 * that dies with its parent. A message is its length, as four bytes, and texts that each end with a zero:
 *   start ID KEEPS COUNT ENVIRONMENT… PROGRAM enter OPTIONS… -- COMMAND…    see enter.h; KEEPS is 1 if file descriptor 3 is reported
 *   kill ID                                                                   the holder itself, if it has not ended
 *   write ID FILE TEXT                                                        a new file
 *   remove ID PATH…                                                           files, and empty folders and control groups, one after another
 * Answers:
 *   pid ID NUMBER               it was started
 *   report ID TEXT              what it wrote to file descriptor 3, when it has closed it
 *   end ID HOW NUMBER ERROR     `exit` with a code or `signal`, and the end of its standard error, when everything that held it is gone
 *   done ID PATH…               a call to write or remove, with the first path that could not be and all after it
 * `parent` is the process id of the worker: without it, the spawner ends at once.
 */
_Noreturn void spawn_for(const char *parent);

#endif
