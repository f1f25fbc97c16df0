#include "engine/session_share.h"

#include <malloc.h>

#include <algorithm>
#include <mutex>

#include "base/process_memory.h"
#include "engine/process_bytes.h"

namespace headroom {
namespace {

// One per process, like the resident set.
struct Account {
  std::mutex mutex;
  int64_t sessions = 0;      // currently inside
  int64_t caller_bytes = 0;  // when the last session began that was alone
  int64_t engine_bytes = 0;  // left resident by earlier sessions, with what is kept
  int64_t kept_bytes = 0;    // of every KeptShare
};

Account& account() {
  static constinit Account instance;
  return instance;
}

}  // namespace

SessionShare::SessionShare() {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  if (all.sessions++ == 0) all.caller_bytes = std::max<int64_t>(0, resident_bytes() - all.engine_bytes);
  caller_bytes_ = all.caller_bytes;
}

SessionShare::~SessionShare() {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  if (--all.sessions > 0) return;
  ::malloc_trim(0);
  all.engine_bytes = std::clamp<int64_t>(resident_bytes() - all.caller_bytes, 0, kPrepareCodeBytes + all.kept_bytes);
}

KeptShare::KeptShare(int64_t bytes) : bytes_(bytes) {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  all.kept_bytes += bytes_;
}

KeptShare::~KeptShare() {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  all.kept_bytes -= bytes_;
}

}  // namespace headroom
