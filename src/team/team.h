// The threads behind parallel regions: they start with the first region that needs them and stay until the process
// ends.
#pragma once

namespace headroom::team {

using Body = void (*)(void*);

enum class Shares {
  together,    // threads may wait for each other inside the region: each share needs a thread of its own
  independent  // who is done may take over a share that nobody has begun
};

// Runs body(data) once as each of `size` threads, this one the first, and returns when all have run. Inside a region it
// runs on this thread alone, as a region of one. Regions that different threads begin run one behind the other. No heap
// call once the threads are there. Ends the program with a message where a thread cannot start.
void run(Body body, void* data, int size, Shares shares);

// Of the region that this thread is in: outside, 0 of 1.
int number();
int size();
bool inside();
// Until all threads of the region have come here. Not where shares are independent.
void barrier();

}  // namespace headroom::team
