#include <stdint.h>

#include "../base/json.h"
#include "link.h"

enum { length_bytes = 8, small_room = 1 << 18 };

static uint32_t read_length(const char *at) {
  const unsigned char *bytes = (const unsigned char *)at;
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/** A large frame leaves no memory behind. */
void frames_add(struct frame_reader *reader, const void *data, size_t length) {
  if (reader->used == reader->held.length && reader->held.room > small_room) bytes_free(&reader->held);
  else bytes_drop(&reader->held, reader->used);
  reader->used = 0;
  bytes_add(&reader->held, data, length);
}

enum frame_found frames_next(struct frame_reader *reader, struct frame *frame) {
  size_t held = reader->held.length - reader->used;
  if (held < length_bytes) return frame_none;
  const char *at = reader->held.data + reader->used;
  size_t head = read_length(at), body = read_length(at + 4);
  if (head > reader->max_head || body > reader->max_body) return frame_invalid;
  if (held < length_bytes + head + body) {
    bytes_reserve(&reader->held, length_bytes + head + body - held);
    return frame_none;
  }
  frame->head = (struct view){at + length_bytes, head};
  frame->body = (struct view){at + length_bytes + head, body};
  reader->used += length_bytes + head + body;
  return json_check(frame->head) ? frame_whole : frame_invalid;
}

void frames_free(struct frame_reader *reader) {
  bytes_free(&reader->held);
  reader->used = 0;
}

static void add_length(struct bytes *to, size_t length) {
  unsigned char bytes[4] = {(unsigned char)(length >> 24), (unsigned char)(length >> 16), (unsigned char)(length >> 8), (unsigned char)length};
  bytes_add(to, bytes, sizeof bytes);
}

void frame_render_head(struct bytes *to, struct view head, size_t body_length) {
  add_length(to, head.length);
  add_length(to, body_length);
  bytes_add(to, head.data, head.length);
}
