#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "output.h"

enum { longest_code = 3 };

void nonce_make(char nonce[nonce_bytes + 1]) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
  unsigned char random[nonce_bytes];
  static uint64_t count;
  count += 1;
  if (getrandom(random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) memset(random, 0, sizeof random);
  for (int index = 0; index < 8; index += 1) random[index] ^= (unsigned char)(count >> (5 * index)); // different even without randomness
  for (int index = 0; index < nonce_bytes; index += 1) nonce[index] = letters[random[index] % 32];
  nonce[nonce_bytes] = 0;
}

void marker_open(struct marker_scan *scan, const char *nonce) {
  snprintf(scan->prefix, sizeof scan->prefix, "\x1b]8517;%s;", nonce);
  bytes_clear(&scan->held);
}

enum match { match_no, match_open, match_whole };

/** Whether a marker begins here. `match_open`: it could, if more bytes came. */
static enum match match_at(const char *prefix, struct view text, size_t *length, int *code) {
  size_t wanted = strlen(prefix);
  size_t common = text.length < wanted ? text.length : wanted;
  if (memcmp(text.data, prefix, common) != 0) return match_no;
  *code = 0;
  for (size_t at = wanted; at < text.length; at += 1) {
    char c = text.data[at];
    if (c == '\a' && at > wanted) {
      *length = at + 1;
      return match_whole;
    }
    if (c < '0' || c > '9' || at - wanted >= longest_code) return match_no;
    *code = *code * 10 + (c - '0');
  }
  return match_open;
}

bool marker_take(struct marker_scan *scan, struct view chunk, struct bytes *output, int *code, struct bytes *rest) {
  bytes_add(&scan->held, chunk.data, chunk.length);
  struct view text = bytes_view(&scan->held);
  for (size_t at = 0; at < text.length;) {
    const char *escape = memchr(text.data + at, '\x1b', text.length - at);
    size_t from = escape == NULL ? text.length : (size_t)(escape - text.data);
    bytes_add(output, text.data + at, from - at);
    if (escape == NULL) break;
    size_t length = 0;
    enum match found = match_at(scan->prefix, (struct view){escape, text.length - from}, &length, code);
    if (found == match_whole) {
      bytes_add(rest, escape + length, text.length - from - length);
      bytes_clear(&scan->held);
      return true;
    }
    if (found == match_open) {
      bytes_drop(&scan->held, from);
      return false;
    }
    bytes_add(output, escape, 1);
    at = from + 1;
  }
  bytes_clear(&scan->held);
  return false;
}

void marker_close(struct marker_scan *scan) { bytes_free(&scan->held); }
