#include "tar.h"

#include <stdio.h>
#include <string.h>

enum { name_bytes = 100 };
/** The largest size that eleven octal digits hold. */
static const size_t size_limit = (size_t)1 << 33;

static void put_text(char *field, const char *text) {
  size_t length = strlen(text);
  memcpy(field, text, length < name_bytes ? length : name_bytes);
}

static void put_octal(char *field, unsigned long value, int digits) {
  char text[24];
  snprintf(text, sizeof text, "%0*lo", digits, value);
  memcpy(field, text, (size_t)digits);
}

static void add_block(struct bytes *to, const struct tar_entry *entry) {
  char block[tar_block] = {0};
  put_text(block, entry->name);
  put_octal(block + 100, entry->mode & 0777, 7);
  put_octal(block + 108, 0, 7);
  put_octal(block + 116, 0, 7);
  put_octal(block + 124, entry->size % size_limit, 11);
  put_octal(block + 136, 0, 11);
  memset(block + 148, ' ', 8);
  block[156] = entry->type;
  put_text(block + 157, entry->target);
  memcpy(block + 257, "ustar\0" "00", 8);
  unsigned long sum = 0;
  for (size_t at = 0; at < sizeof block; at += 1) sum += (unsigned char)block[at];
  put_octal(block + 148, sum, 6);
  block[154] = 0;
  bytes_add(to, block, sizeof block);
}

/** A record starts with its length, which includes the digits of the length itself. */
static void add_record(struct bytes *to, const char *key, const char *value) {
  size_t rest = strlen(key) + strlen(value) + 3;
  size_t length = rest;
  for (int pass = 0; pass < 3; pass += 1) length = rest + (size_t)snprintf(NULL, 0, "%zu", length);
  bytes_print(to, "%zu %s=%s\n", length, key, value);
}

void tar_add_padding(struct bytes *to, size_t length) { bytes_add_zeros(to, (tar_block - length % tar_block) % tar_block); }

void tar_add_header(struct bytes *to, const struct tar_entry *entry) {
  struct bytes records = {0};
  char size[24];
  snprintf(size, sizeof size, "%zu", entry->size);
  if (strlen(entry->name) > name_bytes) add_record(&records, "path", entry->name);
  if (strlen(entry->target) > name_bytes) add_record(&records, "linkpath", entry->target);
  if (entry->size >= size_limit) add_record(&records, "size", size);
  if (records.length > 0) {
    add_block(to, &(struct tar_entry){.name = "long-names", .mode = 0644, .type = 'x', .size = records.length, .target = ""});
    bytes_add(to, records.data, records.length);
    tar_add_padding(to, records.length);
  }
  add_block(to, entry);
  bytes_free(&records);
}
