// Bytes that grow, and views of bytes. Every write into memory whose size depends on input goes through here.

#ifndef MILLRACE_BYTES_H
#define MILLRACE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/** Bytes of someone else; not ended by a zero. Without data, nothing was found. */
struct view {
  const char *data;
  size_t length;
};

/** Owned. All zeros is an empty one. After any write, the byte behind the last one is zero. */
struct bytes {
  char *data;
  size_t length;
  size_t room;
};

/** Zeroed memory. Where there is none left, the program ends: the worker then sees that the sandbox ran out of memory. */
void *make(size_t size);

/** Makes room for this many more bytes, and no more than that. */
void bytes_reserve(struct bytes *of, size_t more);
void bytes_add(struct bytes *to, const void *data, size_t length);
void bytes_add_text(struct bytes *to, const char *text);
void bytes_add_zeros(struct bytes *to, size_t length);
__attribute__((format(printf, 2, 3))) void bytes_print(struct bytes *to, const char *format, ...);
/** Removes the first bytes. */
void bytes_drop(struct bytes *from, size_t length);
/** Keeps only the last bytes. */
void bytes_keep_tail(struct bytes *of, size_t length);
/** Keeps its memory. */
void bytes_clear(struct bytes *of);
void bytes_free(struct bytes *of);
/** Never null: an empty text if nothing was written. */
const char *bytes_text(const struct bytes *of);
struct view bytes_view(const struct bytes *of);

struct view view_of(const char *text);
bool view_is(struct view view, const char *text);
bool view_starts(struct view view, const char *text);

#endif
