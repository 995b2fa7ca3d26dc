#include "utf8.h"

static bool is_between(unsigned char byte, int low, int high) { return byte >= low && byte <= high; }

uint32_t utf8_next(struct view text, size_t *at) {
  unsigned char first = (unsigned char)text.data[*at];
  *at += 1;
  if (first < 0x80) return first;
  int more = is_between(first, 0xc2, 0xdf) ? 1 : is_between(first, 0xe0, 0xef) ? 2 : is_between(first, 0xf0, 0xf4) ? 3 : 0;
  if (more == 0) return utf8_replacement;
  // The second byte is narrower where the character would be too long, a surrogate, or beyond the last one.
  int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  uint32_t code = first & (0x3fu >> more);
  for (int index = 0; index < more; index += 1) {
    if (*at >= text.length || !is_between((unsigned char)text.data[*at], low, high)) return utf8_replacement;
    code = code << 6 | ((unsigned char)text.data[*at] & 0x3f);
    *at += 1;
    low = 0x80;
    high = 0xbf;
  }
  return code;
}

void utf8_add(struct bytes *to, uint32_t code) {
  unsigned char bytes[4];
  size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  if (length == 1) bytes[0] = (unsigned char)code;
  for (size_t index = length; length > 1 && index > 1; index -= 1) {
    bytes[index - 1] = (unsigned char)(0x80 | (code & 0x3f));
    code >>= 6;
  }
  if (length > 1) bytes[0] = (unsigned char)((0xf00 >> length & 0xff) | code);
  bytes_add(to, bytes, length);
}

bool utf8_is_valid(struct view text) {
  for (size_t at = 0; at < text.length;) {
    size_t from = at;
    if (utf8_next(text, &at) == utf8_replacement && !(at - from == 3 && view_starts((struct view){text.data + from, 3}, "\xef\xbf\xbd"))) return false;
  }
  return true;
}
