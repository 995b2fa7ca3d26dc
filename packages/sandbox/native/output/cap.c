#include "output.h"

#include <string.h>

void cap_open(struct output_cap *cap, double cap_bytes) {
  size_t whole = cap_bytes > 0 ? (size_t)cap_bytes : 0;
  *cap = (struct output_cap){.head_cap = whole - whole / 2, .tail_cap = whole / 2};
}

static struct view take(struct view *from, size_t most) {
  size_t length = from->length < most ? from->length : most;
  struct view taken = {from->data, length};
  from->data += length;
  from->length -= length;
  return taken;
}

void cap_add(struct output_cap *cap, struct view chunk) {
  if (chunk.length == 0) return;
  cap->total += chunk.length;
  struct view piece = take(&chunk, cap->head_cap - cap->head.length);
  bytes_add(&cap->head, piece.data, piece.length);
  piece = take(&chunk, cap->tail_cap - cap->tail.length);
  bytes_add(&cap->tail, piece.data, piece.length);
  if (cap->tail_cap == 0) return;
  if (chunk.length > cap->tail_cap) {
    cap->tail_at = (cap->tail_at + chunk.length - cap->tail_cap) % cap->tail_cap;
    take(&chunk, chunk.length - cap->tail_cap);
  }
  while (chunk.length > 0) {
    piece = take(&chunk, cap->tail_cap - cap->tail_at);
    memcpy(cap->tail.data + cap->tail_at, piece.data, piece.length);
    cap->tail_at = (cap->tail_at + piece.length) % cap->tail_cap;
  }
}

static bool is_continuation(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

static void drop_open_character(struct bytes *of) {
  for (size_t back = 1; back <= 3 && back <= of->length; back += 1) {
    unsigned char byte = (unsigned char)of->data[of->length - back];
    if (is_continuation((char)byte)) continue;
    size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > back) of->length -= back;
    return;
  }
}

static void drop_continuation(struct bytes *of) {
  size_t count = 0;
  while (count < 3 && count < of->length && is_continuation(of->data[count])) count += 1;
  bytes_drop(of, count);
}

struct kept_output cap_end(struct output_cap *cap) {
  struct kept_output kept = {.head = cap->head, .total_bytes = cap->total};
  struct view tail = bytes_view(&cap->tail);
  bool is_cut = cap->total > cap->head.length + cap->tail.length;
  size_t at = is_cut ? cap->tail_at : 0;
  bytes_add(&kept.tail, tail.data + at, tail.length - at);
  bytes_add(&kept.tail, tail.data, at);
  bytes_free(&cap->tail);
  cap->head = (struct bytes){0};
  if (is_cut) {
    drop_open_character(&kept.head);
    drop_continuation(&kept.tail);
  }
  kept.cut_bytes = kept.total_bytes - kept.head.length - kept.tail.length;
  return kept;
}

void cap_free(struct output_cap *cap) {
  bytes_free(&cap->head);
  bytes_free(&cap->tail);
}
