// The output of a command: cut at its end marker, capped in constant memory, and rendered as the text that a person would read.

#ifndef MILLRACE_OUTPUT_H
#define MILLRACE_OUTPUT_H

#include <stdint.h>

#include "../base/bytes.h"

enum { nonce_bytes = 12 };

/** Unique, not secret: a program that forges a marker deceives only its own agent. */
void nonce_make(char nonce[nonce_bytes + 1]);

/** Finds `ESC ]8517;nonce;code BEL` wherever the stream is cut, and holds back nothing that cannot be part of it. */
struct marker_scan {
  char prefix[32];
  struct bytes held;
};

void marker_open(struct marker_scan *scan, const char *nonce);
/**
 * Adds what is output to `output`. Returns whether the marker was found; then `code` is its number, and what follows it in the chunk is
 * added to `rest`.
 */
bool marker_take(struct marker_scan *scan, struct view chunk, struct bytes *output, int *code, struct bytes *rest);
void marker_close(struct marker_scan *scan);

/** Keeps the head and the tail of a stream of any length, and counts the bytes in between. */
struct output_cap {
  size_t head_cap;
  size_t tail_cap;
  struct bytes head;
  /** A ring once it is full. */
  struct bytes tail;
  size_t tail_at;
  uint64_t total;
};

void cap_open(struct output_cap *cap, double cap_bytes);
void cap_add(struct output_cap *cap, struct view chunk);

/** No cut is inside a UTF-8 character: the bytes of a partial character count as missing. */
struct kept_output {
  struct bytes head;
  struct bytes tail;
  uint64_t total_bytes;
  uint64_t cut_bytes;
};

/** Empties the cap. */
struct kept_output cap_end(struct output_cap *cap);
void cap_free(struct output_cap *cap);

/** At most three bytes for each byte kept, and the note about the cut. Frees what was kept. */
void render_output(struct kept_output *kept, struct bytes *to);
/**
 * Escape sequences are removed. Carriage returns, backspaces and line erasure are applied within their line. Of the control characters,
 * only newline and tab remain. Cursor movement between lines is ignored.
 */
void render_terminal(struct view text, struct bytes *to);

#endif
