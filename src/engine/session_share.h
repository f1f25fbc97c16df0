// The memory that the sessions of a process share, so that each budget counts the process's constant part once.
#pragma once

#include <cstdint>

namespace headroom {

// A call of the engine (a plan or a run), from before it allocates until it has freed. At its start it divides the
// resident set into the memory of the program around the engine, which its budget counts as `process.caller`, and the
// memory that the engine has left: pages of code and libraries, stacks, the allocator's heap. Every plan counts the
// latter as `process.code`, so it is not counted again as the caller's.
//
// The engine's part is what earlier calls made resident, at most what every phase of a plan counts for it, and what
// KeptShare counts. While another call runs, the resident set also holds its arena: a call that begins meanwhile uses
// the caller's bytes from when nothing ran.
//
// Thread-safe.
class SessionShare {
 public:
  SessionShare();
  SessionShare(const SessionShare&) = delete;
  SessionShare& operator=(const SessionShare&) = delete;
  ~SessionShare();

  // Held by the program around the engine, bytes.
  int64_t caller_bytes() const { return caller_bytes_; }

 private:
  int64_t caller_bytes_ = 0;
};

// Memory that a session keeps when its call ends: it is in that session's budget, and no call counts it as the
// caller's. Made and ended while a SessionShare exists, which then sees what became resident and what was freed.
// Thread-safe.
class KeptShare {
 public:
  // A bound on it, without `process.code` and `process.caller`.
  explicit KeptShare(int64_t bytes);
  KeptShare(const KeptShare&) = delete;
  KeptShare& operator=(const KeptShare&) = delete;
  ~KeptShare();

 private:
  int64_t bytes_ = 0;
};

}  // namespace headroom
