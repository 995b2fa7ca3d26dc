// One running cell. It is over when its output has ended and its reply has arrived, or when its process has ended.

#ifndef MILLRACE_CELL_H
#define MILLRACE_CELL_H

#include "../output/output.h"
#include "../wire/link.h"

struct cell {
  char nonce[nonce_bytes + 1];
  struct marker_scan scan;
  bool has_begun;
  /** A signal sent before the cell has begun would be lost, so it waits. */
  bool wants_interrupt;
  bool has_output_end;
  bool has_failed;
  bool has_reply;
  /** A JSON list of the images' types and sizes, and their data one after the other. */
  struct bytes images;
  struct bytes data;
};

void cell_open(struct cell *cell);
/** Adds what belongs to the cell to `output`, and what comes after its end to `late`. */
void cell_take_output(struct cell *cell, struct view chunk, struct bytes *output, struct bytes *late);
/** The first frame says that the cell has begun; the second is its reply. False for a frame that no host sends. */
bool cell_take_frame(struct cell *cell, const struct frame *frame);
bool cell_is_over(const struct cell *cell);
void cell_free(struct cell *cell);

#endif
