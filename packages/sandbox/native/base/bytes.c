#include "bytes.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory) {
  if (memory != NULL) return memory;
  fputs("the executor has no memory left\n", stderr);
  exit(1);
}

void *make(size_t size) { return must(calloc(1, size > 0 ? size : 1)); }

/** How much room this many more bytes and a zero need. */
static size_t room_for(const struct bytes *of, size_t more) {
  if (more >= SIZE_MAX / 4 || of->length >= SIZE_MAX / 4) must(NULL);
  return of->length + more + 1;
}

static void set_room(struct bytes *of, size_t room) {
  if (room <= of->room) return;
  of->data = must(realloc(of->data, room));
  of->room = room;
}

void bytes_reserve(struct bytes *of, size_t more) { set_room(of, room_for(of, more)); }

/** Grows by half at least, so that many small writes copy little. */
static void reserve(struct bytes *of, size_t more) {
  size_t wanted = room_for(of, more);
  if (wanted > of->room) set_room(of, of->room + of->room / 2 > wanted ? of->room + of->room / 2 : wanted);
}

void bytes_add(struct bytes *to, const void *data, size_t length) {
  reserve(to, length);
  if (length > 0) memcpy(to->data + to->length, data, length);
  to->length += length;
  to->data[to->length] = 0;
}

void bytes_add_text(struct bytes *to, const char *text) { bytes_add(to, text, strlen(text)); }

void bytes_add_zeros(struct bytes *to, size_t length) {
  reserve(to, length);
  memset(to->data + to->length, 0, length + 1);
  to->length += length;
}

void bytes_print(struct bytes *to, const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  int length = vsnprintf(NULL, 0, format, values);
  va_end(values);
  if (length > 0) {
    reserve(to, (size_t)length);
    vsnprintf(to->data + to->length, (size_t)length + 1, format, again);
    to->length += (size_t)length;
  }
  va_end(again);
}

void bytes_drop(struct bytes *from, size_t length) {
  if (length == 0) return;
  if (length > from->length) length = from->length;
  memmove(from->data, from->data + length, from->length - length);
  from->length -= length;
  from->data[from->length] = 0;
}

void bytes_keep_tail(struct bytes *of, size_t length) {
  if (of->length > length) bytes_drop(of, of->length - length);
}

void bytes_clear(struct bytes *of) { bytes_drop(of, of->length); }

void bytes_free(struct bytes *of) {
  free(of->data);
  *of = (struct bytes){0};
}

const char *bytes_text(const struct bytes *of) { return of->data == NULL ? "" : of->data; }

struct view bytes_view(const struct bytes *of) { return (struct view){bytes_text(of), of->length}; }

struct view view_of(const char *text) { return (struct view){text, strlen(text)}; }

bool view_is(struct view view, const char *text) { return view.length == strlen(text) && view_starts(view, text); }

bool view_starts(struct view view, const char *text) {
  size_t length = strlen(text);
  return view.data != NULL && view.length >= length && memcmp(view.data, text, length) == 0;
}
