// The headers of tar archives that the executor packs.

#ifndef MILLRACE_TAR_H
#define MILLRACE_TAR_H

#include <sys/types.h>

#include "../base/bytes.h"

enum { tar_block = 512 };

/** `type`: `0` is a file, `2` a link, `5` a folder, whose name ends with a slash. A long name comes in an extended header before it. */
struct tar_entry {
  const char *name;
  mode_t mode;
  char type;
  size_t size;
  /** Of a link; otherwise empty. */
  const char *target;
};

void tar_add_header(struct bytes *to, const struct tar_entry *entry);
/** The zeros that fill the last block of this many bytes. */
void tar_add_padding(struct bytes *to, size_t length);

#endif
