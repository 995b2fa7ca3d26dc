// The connection to the worker: frames in, replies out. Two big-endian uint32 (length of the head, length of the body), a JSON head,
// and raw bytes. The protocol is packages/protocol/src/executor.ts.

#ifndef MILLRACE_LINK_H
#define MILLRACE_LINK_H

#include "../base/bytes.h"

/** Views into the reader; valid until it is given more bytes. The head is checked JSON. */
struct frame {
  struct view head;
  struct view body;
};

struct frame_reader {
  size_t max_head;
  size_t max_body;
  struct bytes held;
  /** How many of the held bytes belong to frames that were already returned. */
  size_t used;
};

void frames_add(struct frame_reader *reader, const void *data, size_t length);
enum frame_found { frame_none, frame_whole, frame_invalid };
/** The next frame. `frame_invalid` if it is over a limit, which is known from its lengths alone, or its head is not JSON. */
enum frame_found frames_next(struct frame_reader *reader, struct frame *frame);
void frames_free(struct frame_reader *reader);
/** All of a frame but its body. */
void frame_render_head(struct bytes *to, struct view head, size_t body_length);

/** A call of the worker that can be cancelled while it runs. */
struct call {
  long id;
  bool is_cancelled;
  /** Called once. `expired`: its time is up by the worker's clock. */
  void (*cancel)(struct call *call, bool expired);
  struct call *next;
};

void call_begin(struct call *call, long id, void (*cancel)(struct call *call, bool expired));
/** Call it before the reply. */
void call_end(struct call *call);
void call_cancel(long id, bool expired);

/** A request of the worker: valid until the handler returns. */
struct request {
  long id;
  struct view params;
  struct view body;
};

/** Numbers of the parameters; `otherwise` if there is none. */
double param_number(const struct request *request, const char *name, double otherwise);
/** False if there is no such string, or it holds a zero. */
bool param_text(const struct request *request, const char *name, struct bytes *to);

void reply_result(long id, struct view result, struct view body);
/** `error_number` is what the kernel said, or 0. Only a limit passes it on by name. */
__attribute__((format(printf, 4, 5))) void reply_error(long id, const char *kind, int error_number, const char *format, ...);

/** A frame that is not a reply. */
void link_send(struct view head, struct view body);
/** Bytes that the worker has not taken yet. */
size_t link_waiting(void);
/** Called each time that the worker has taken all of them. */
void link_on_drained(void (*call)(void));

/** Connects, and calls `take` for each request. The program ends with the connection. */
void link_open(const char *folder, const char *port, void (*take)(struct view method, const struct request *request));
/** Sends the first frame. */
void link_ready(void);

#endif
