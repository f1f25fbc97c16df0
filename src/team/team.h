// The threads of parallel regions: they start with the first region that needs them and stay until the process ends.
// ends.
#pragma once

namespace headroom::team {

using Body = void (*)(void*);

enum class Shares {
  together,    // threads may wait for each other inside the region: each share needs its own thread
  independent  // a thread that is done may take over a share that has not begun
};

// Runs body(data) once as each of `size` threads, including this one as the first, and returns when all have run.
// Inside a region it runs on this thread alone, as a region of one. Regions begun by different threads run one after
// another. No heap call once the threads exist. Ends the program with a message if a thread cannot start.
void run(Body body, void* data, int size, Shares shares);

// For the region that this thread is in; outside a region: 0 of 1.
int number();
int size();
bool inside();
// Waits until all threads of the region have called it. Not allowed if shares are independent.
void barrier();

}  // namespace headroom::team
