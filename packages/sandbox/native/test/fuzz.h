// A fuzzer for everything in the executor that reads what an agent wrote. The same seed makes the same inputs.

#ifndef MILLRACE_FUZZ_H
#define MILLRACE_FUZZ_H

/** Ends the program, with the input, if a claim does not hold. */
void fuzz(unsigned seed, long rounds);
void fuzz_loopback(unsigned seed, long rounds);

#endif
