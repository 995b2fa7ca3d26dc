// A folder that is being packed, one entry at a time.

#ifndef MILLRACE_PACK_H
#define MILLRACE_PACK_H

#include "../base/loop.h"
#include "../wire/link.h"

/** A folder that is being packed: its names in order, and where its path ends. */
struct level {
  char **names;
  size_t at;
  size_t path_length;
  struct level *above;
};

struct packing {
  struct call call;
  struct timer timer;
  /** As the worker asked for it. */
  struct bytes asked;
  /** The real path of the folder, followed by that of the current entry. */
  struct bytes path;
  size_t folder_length;
  struct level *level;
  char **exclude;
  size_t max_bytes;
  size_t max_entries;
  double since_ms;
  bool any_link;
  bool list_unchanged;
  double end_ms;
  struct bytes archive;
  struct bytes unchanged;
  struct bytes notes;
  size_t entries;
  size_t left_out;
  /** The kind of the error that stops the packing, and its message. */
  const char *failed;
  int error;
  struct bytes message;
};

/** Adds the entry at the current path; of a folder, only itself. */
void pack_entry(struct packing *packing, bool *is_folder);
/** Leaves the entry at the current path out, because of the last error of the kernel. A limit stops the packing. */
void pack_leave_out_error(struct packing *packing);
/** Whether the archive may grow by this much. Otherwise the packing has failed. */
bool pack_has_room(struct packing *packing, size_t more);

#endif
