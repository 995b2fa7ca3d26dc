// A service of the worker on the sandbox's loopback. The executor listens on 127.0.0.1 and carries each connection as frames: what a program
// writes goes to the worker, and what the worker writes goes to the program. Neither side sends more than a window of bytes that the other
// has not taken, so that no program can fill memory.

#ifndef MILLRACE_LOOPBACK_H
#define MILLRACE_LOOPBACK_H

#include "../wire/link.h"

/** Replies with the port. The worker chooses the listener's number, which the events of its connections name. */
void listen_on_loopback(const struct request *request);
/** Resets the listener's connections too. */
void close_listener(const struct request *request);

/** These have no reply. A connection that the worker does not know to be closed yet is ignored. */
void write_connection(const struct request *request);
/** No more will be written. */
void end_connection(const struct request *request);
/** The worker has taken this many bytes. */
void ack_connection(const struct request *request);
void close_connection(const struct request *request);

/** For tests: how many connections are open, the number of the next one, and the most bytes that one of them holds or that were not taken. */
struct loopback_count {
  long connections;
  long next_number;
  size_t most_bytes;
};
struct loopback_count count_loopback(void);

#endif
