// The calls that start programs and read or write files of the sandbox.

#ifndef MILLRACE_CALLS_H
#define MILLRACE_CALLS_H

#include "../wire/link.h"

/** A one-off program, with the given standard input and capped output. */
void run_exec(const struct request *request);

/** Programs that run while the worker talks to them. */
void open_program(const struct request *request);
void write_program(const struct request *request);
void read_program(const struct request *request);
void close_program(const struct request *request);

/** Only regular files are read, up to the given size, and not through links that leave the home folder. */
void read_file(const struct request *request);
void write_file(const struct request *request);
/** To a new file. */
void copy_file(const struct request *request);
/** One that is not there yet. */
void make_folder(const struct request *request);

/** Packs a folder as a tar archive: files, folders, and links that stay inside. */
void read_folder(const struct request *request);

#endif
