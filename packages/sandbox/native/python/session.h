// The persistent Python session: runs one cell at a time and keeps variables from cell to cell. It starts with the first cell. No matter
// what a cell does to its process, the next cell has a working one, and the output says when variables were lost.

#ifndef MILLRACE_PYTHON_SESSION_H
#define MILLRACE_PYTHON_SESSION_H

#include "../wire/link.h"

/** A call made while a cell runs waits for it. Its timeout starts when Python is ready for it. */
void python_run(const struct request *request);

#endif
